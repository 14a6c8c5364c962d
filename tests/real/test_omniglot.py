"""All of Omniglot, from the official zips."""

import zipfile

import numpy as np
import pytest

from protorect import load_features
from protorect.backbones.inference import embed
from protorect.backbones.weights import TrainedBackbone
from protorect.datasets.prepare import prepare
from protorect.embedding.extract import extract


@pytest.fixture(scope="module")
def packed(real_data, tmp_path_factory):
    root = real_data("omniglot")
    return prepare("omniglot", root, tmp_path_factory.mktemp("omniglot") / "packed", workers=2)


def test_all_files_are_packed(packed):
    assert packed.manifest["unreadable"] == []
    assert packed.manifest["left_out"] == []


@pytest.mark.parametrize(("name", "classes"), [("train", 4112), ("val", 688), ("test", 1692)])
def test_twenty_drawings_of_every_class(packed, name, classes):
    split = packed.split(name)
    assert split.images.shape == (20 * classes, 28, 28, 1)
    assert len(split.class_names) == classes
    np.testing.assert_array_equal(split.labels, np.repeat(np.arange(classes), 20))


def test_strokes_are_bright(packed):
    images = packed.split("test").images
    np.testing.assert_array_less(images.mean((1, 2, 3)), 100)
    np.testing.assert_array_less(150, images.max((1, 2, 3)))
    assert 0.07 < packed.mean[0] < 0.09


def test_the_four_rotations(packed):
    images = packed.split("val").images[: 4 * 20].reshape(4, 20, 28, 28)
    for turn in range(4):
        np.testing.assert_array_equal(images[turn], np.rot90(images[0], turn, axes=(1, 2)))


def test_the_packaged_weights_accept_the_original_drawings(packed, real_data, tmp_path):
    """Black on white from the archive gives the same features as the packed data set."""
    split = packed.split("test")
    upright = [name for name in split.class_names if name.endswith("/rot000")][:5]
    folders = {
        name.removesuffix("/rot000"): tmp_path / "drawings" / str(i)
        for i, name in enumerate(upright)
    }
    with zipfile.ZipFile(real_data("omniglot") / "images_evaluation.zip") as archive:
        for member in archive.namelist():
            parts = member.split("/")
            folder = folders.get("/".join(parts[1:-1]))
            if folder is not None and member.endswith(".png"):
                folder.mkdir(parents=True, exist_ok=True)
                (folder / parts[-1]).write_bytes(archive.read(member))
    done = extract(
        "omniglot-conv64", tmp_path / "drawings", tmp_path / "f.npz", precision="float32"
    )
    assert done.inverted
    found, labels = load_features(tmp_path / "f.npz")
    assert labels.tolist() == [str(i) for i in range(len(upright)) for _ in range(20)]
    rows = np.isin(split.labels, [split.class_names.index(name) for name in upright])
    network = TrainedBackbone.load("omniglot-conv64")
    expected = embed(network.backbone, split.images[rows], network.preprocessing_for(packed.mean))
    np.testing.assert_allclose(found, expected, atol=1e-5)
