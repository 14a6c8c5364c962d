"""A small data set of three splits, packed once."""

import numpy as np
import pytest
from PIL import Image

from protorect.data.prepare import prepare

CLASSES, EACH, SIDE = 18, 24, 28


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """Noisy stripes of one direction and width a class: 8 classes to train, 5 and 5 to test."""
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
            grey = 128 + 60 * wave + 40 * rng.normal(size=wave.shape)
            Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.png")
    out = root.parent / "packed-stripes"
    prepare("folder", root, out, size=SIDE, split=(8 / 18, 5 / 18, 5 / 18), workers=1)
    return out
