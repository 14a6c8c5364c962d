"""Drawings with dark or bright strokes."""

import numpy as np
import pytest
from PIL import Image

from protorect import load_features
from protorect.cli import main
from protorect.datasets.prepare import prepare
from protorect.embedding.extract import extract


@pytest.fixture
def drawings(tmp_path):
    """Dark strokes on white paper."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "drawings" / name).mkdir(parents=True)
        for number in range(3):
            ink = rng.random((105, 105)) < 0.1
            picture = Image.fromarray(np.where(ink, 0, 255).astype(np.uint8))
            picture.save(tmp_path / "drawings" / name / f"{number}.png")
    return tmp_path / "drawings"


def negatives(drawings, folder):
    for path in drawings.glob("*/*.png"):
        (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(255 - np.asarray(Image.open(path)))
        image.save(folder / path.parent.name / path.name)
    return folder


def test_strokes_may_be_dark_or_bright(drawings, tmp_path, capsys):
    """In any case, packed before or not, the network gets bright strokes."""
    bright = negatives(drawings, tmp_path / "bright")
    prepare("folder", drawings, tmp_path / "packed", size=28, channels=1, split=(0.0, 0.0, 1.0))
    features = []
    for name, source in (("d", drawings), ("b", bright), ("p", tmp_path / "packed")):
        assert main(["extract", "omniglot-conv64", str(source), "--out", str(tmp_path / name)]) == 0
        inverted = "dark and bright were exchanged" in capsys.readouterr().err
        assert inverted == (name != "b")
        features.append(load_features(tmp_path / name)[0])
    np.testing.assert_array_equal(features[0], features[2])
    np.testing.assert_allclose(
        features[0], features[1], atol=0.15
    )  # resized before or after: rounding


def test_only_a_network_trained_on_bright_strokes_inverts(drawings, weights, tmp_path):
    assert not extract(weights, drawings, tmp_path / "f.npz").inverted
