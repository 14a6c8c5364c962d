"""A small world of coloured pictures, and a small network to tell them apart."""

import os

import numpy as np
from PIL import Image

from protorect.labeling.predictions import Prediction, Predictions
from protorect.sorting.folder import SortedFolder
from protorect.sorting.placing import content_of

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


def predicted(pile, folder_of=lambda path: path.parent.name):
    """Predictions of every picture of a pile, each into the folder it is in."""
    paths = sorted(path for path in pile.rglob("*") if path.is_file())
    rows = [Prediction(str(p), folder_of(p), 0.9, "other", 0.8, 0.5, folder_of(p)) for p in paths]
    contents = [content_of(path) for path in paths]
    return Predictions(tuple(rows), (), (), ("blue", "red"), "cspn", tuple(contents))


def fill(world, mode):
    return SortedFolder.open(world.out).add(predicted(world.pile), mode, [])
