"""All of Omniglot, from the official zips."""

import numpy as np
import pytest

from protorect.data.prepare import prepare


@pytest.fixture(scope="module")
def packed(real_data, tmp_path_factory):
    root = real_data("omniglot")
    return prepare("omniglot", root, tmp_path_factory.mktemp("omniglot") / "packed", workers=2)


def test_nothing_is_missing(packed):
    assert packed.manifest["unreadable"] == []
    assert packed.manifest["left_out"] == []


@pytest.mark.parametrize(("name", "classes"), [("train", 4112), ("val", 688), ("test", 1692)])
def test_twenty_drawings_of_every_class(packed, name, classes):
    split = packed.split(name)
    assert split.images.shape == (20 * classes, 28, 28, 1)
    assert len(split.class_names) == classes
    np.testing.assert_array_equal(split.labels, np.repeat(np.arange(classes), 20))


def test_ink_is_high(packed):
    images = packed.split("test").images
    np.testing.assert_array_less(images.mean((1, 2, 3)), 100)
    np.testing.assert_array_less(150, images.max((1, 2, 3)))
    assert 0.07 < packed.mean[0] < 0.09


def test_the_four_rotations(packed):
    images = packed.split("val").images[: 4 * 20].reshape(4, 20, 28, 28)
    for turn in range(4):
        np.testing.assert_array_equal(images[turn], np.rot90(images[0], turn, axes=(1, 2)))
