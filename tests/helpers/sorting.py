"""Colored pictures with labels, a small network for them, and folders they are sorted into."""

import os

import numpy as np
from PIL import Image

from protorect._utils.files import sha256_of_file
from protorect.labeling.placements import Placement, load_plans
from protorect.labeling.prediction import Prediction
from protorect.labeling.predictions import Predictions
from protorect.sorting.folder import open_folder
from protorect.sorting.placing import is_placed

COLORS = {"blue": (30, 60, 200), "green": (40, 180, 60), "red": (210, 50, 40)}
OTHER = (240, 220, 40)


def picture(path, color, seed):
    """Write a picture of one color with noise; each seed gives another."""
    rng = np.random.default_rng(seed)
    pixels = np.clip(np.array(color) + rng.normal(0, 25, (36, 40, 3)), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


class ColoredPictures:
    """examples/<class>/ and pictures/<class>/, where every name occurs once per class."""

    def __init__(self, root, weights, shots=3, each=8):
        self.root, self.weights = root, str(weights)
        self.examples, self.pictures = root / "examples", root / "pictures"
        self.out = root / "out"
        seed = 0
        for name, color in COLORS.items():
            for number in range(shots):
                picture(self.examples / name / f"{number}.png", color, seed)
                seed += 1
            for number in range(each):
                picture(self.pictures / name / f"{number}.png", color, seed)
                seed += 1

    def add_pink(self, each=8):
        """Pictures of no class that are like red ones, and more kinds of red; the pink pictures."""
        for number, color in enumerate([(225, 90, 40), (170, 35, 35), (200, 30, 70)]):
            picture(self.examples / "red" / f"more{number}.png", color, 300 + number)
            picture(self.pictures / "red" / f"more{number}.png", color, 400 + number)
        return [
            picture(self.pictures / "pink" / f"p{number}.png", (212, 60, 60), 200 + number)
            for number in range(each)
        ]

    def tree(self):
        """Everything below the root: the bytes of a file, the target of a link, or a folder."""
        tree = {}
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                key = os.path.relpath(path, self.root)
                if os.path.islink(path):
                    tree[key] = ("link", os.readlink(path))
                elif os.path.isdir(path):
                    tree[key] = ("folder", None)
                else:
                    with open(path, "rb") as file:
                        tree[key] = ("file", file.read())
        return tree


def predicted(folder, label_of=lambda path: path.parent.name):
    """Predictions of every picture in a folder, by default the name of its class folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    rows = [Prediction(str(p), label_of(p), 0.9, "other", 0.8, 0.5, label_of(p)) for p in paths]
    contents = [sha256_of_file(path) for path in paths]
    return Predictions(tuple(rows), (), (), ("blue", "red"), "cspn", tuple(contents))


def placement(path, label, probability, folder=None, number=0, runner_up="other"):
    """A picture that is placed in the folder of its label, or in this one."""
    row = Prediction(path, label, probability, runner_up, probability / 2, 0.75, folder or label)
    return Placement(row, f"{row.folder}/{os.path.basename(path)}", f"{number:064}")


def fill(colors, mode):
    """Place all pictures; the problems, and the links that were made in another way."""
    with open_folder(colors.out) as folder:
        return folder.add(predicted(colors.pictures), mode, [])


def undo(colors):
    """Undo the sorting; the problems."""
    with open_folder(colors.out) as folder:
        return folder.undo()


def unplaced(colors):
    """How many pictures an interruption left to be placed."""
    return sum(
        not is_placed(placement, colors.out, plan.mode)
        for plan in load_plans(colors.out)
        for placement in plan.placements
    )
