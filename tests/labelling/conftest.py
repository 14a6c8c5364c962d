"""A small world of coloured pictures, and a small network to tell them apart."""

import os

import numpy as np
import pytest
import torch
from PIL import Image

from protorect.backbones import build
from protorect.checkpoint import save_tensors

COLOURS = {"blue": (30, 60, 200), "green": (40, 180, 60), "red": (210, 50, 40)}
OTHER = (240, 220, 40)


def picture(path, colour, seed):
    """A square of one colour on noise; every seed another."""
    rng = np.random.default_rng(seed)
    pixels = np.clip(np.array(colour) + rng.normal(0, 25, (36, 40, 3)), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


class World:
    """EXAMPLES/<class>/, PILE/<class>/ in which every name occurs once a class, and weights."""

    def __init__(self, root, weights, shots=3, each=8):
        self.root, self.weights = root, str(weights)
        self.examples, self.pile, self.out = root / "examples", root / "pile", root / "out"
        seed = 0
        for name, colour in COLOURS.items():
            for number in range(shots):
                picture(self.examples / name / f"{number}.png", colour, seed)
                seed += 1
            for number in range(each):
                picture(self.pile / name / f"{number}.png", colour, seed)
                seed += 1

    def tree(self):
        """Everything below the root with what it is: bytes, where a link leads, or a folder."""
        found = {}
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                key = os.path.relpath(path, self.root)
                if os.path.islink(path):
                    found[key] = ("link", os.readlink(path))
                elif os.path.isdir(path):
                    found[key] = ("folder", None)
                else:
                    with open(path, "rb") as file:
                        found[key] = ("file", file.read())
        return found


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    """A network of 28 pixels with weights drawn at random: enough to tell colours apart."""
    torch.manual_seed(0)
    network = build("conv64", channels=3, size=28)
    path = tmp_path_factory.mktemp("weights") / "conv64.safetensors"
    card = {"kind": "backbone", "backbone": "conv64", "channels": 3, "size": 28}
    save_tensors(path, network.state_dict(), card | {"mean": [0.5] * 3, "std": [0.25] * 3})
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """No test reads or fills the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def world(tmp_path, weights):
    return World(tmp_path, weights)
