"""Data that several packages of tests use."""

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.clusters import clusters
from helpers.sorting import ColoredPictures
from protorect._utils.checkpoint import save_tensors
from protorect.backbones.registry import build
from protorect.datasets.prepare import prepare

CLASSES, EACH, SIDE = 18, 24, 28


@pytest.fixture
def feature_set():
    return clusters()


@pytest.fixture
def feature_file(tmp_path, feature_set):
    path = tmp_path / "features.npz"
    np.savez(path, features=feature_set[0], labels=feature_set[1])
    return path


@pytest.fixture(scope="session")
def color_weights(tmp_path_factory):
    """A network of 28 pixels with random weights, which are enough to distinguish colors."""
    torch.manual_seed(0)
    network = build("conv64", channels=3, size=28)
    path = tmp_path_factory.mktemp("weights") / "conv64.safetensors"
    card = {"kind": "backbone", "backbone": "conv64", "channels": 3, "size": 28}
    save_tensors(path, network.state_dict(), card | {"mean": [0.5] * 3, "std": [0.25] * 3})
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """No test reads or fills the user's cache, or uses the user's key."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def colors(tmp_path, color_weights):
    return ColoredPictures(tmp_path, color_weights)


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """Noisy stripes of one direction and width per class: 8 classes to train, 5 and 5 to test."""
    root = tmp_path_factory.mktemp("stripes")
    rng = np.random.default_rng(0)
    down, across = np.mgrid[:SIDE, :SIDE] / SIDE
    for label in range(CLASSES):
        folder = root / f"stripes {label:02}"
        folder.mkdir()
        angle, width = np.pi * label / CLASSES, 4 + 3 * (label % 3)
        for number in range(EACH):
            phase = rng.uniform(0, 2 * np.pi)
            along = np.cos(angle) * down + np.sin(angle) * across
            wave = np.sin(2 * np.pi * width * along + phase)
            gray = 128 + 60 * wave + 40 * rng.normal(size=wave.shape)
            Image.fromarray(gray.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.png")
    out = root.parent / "packed-stripes"
    prepare("folder", root, out, size=SIDE, split=(8 / 18, 5 / 18, 5 / 18), workers=1)
    return out
