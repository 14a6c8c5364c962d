"""From digits to features, as the commands do it: prepare, train on five, extract the others.

The pictures are scikit-learn's 1797 digits of 8 x 8 grey values; they come with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import prepare
from protorect.demo.plan import BASE, Plan
from protorect.embedding import extract
from protorect.evaluation.features import load_features
from protorect.training import train
from protorect.training.loop import StepReport

SIZE = 48  # of the packed pictures: four halvings leave 3 x 3 places in a picture
TURNS = 4  # quarter turns of a base digit, each a class of its own, as with Omniglot
_BRIGHTEST = 16  # of scikit-learn's grey values


class Epoch(NamedTuple):
    """How an epoch of the training went on the pictures trained on; accuracy in percent."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Learned:
    """What the training left.

    Parameters
    ----------
    epochs
        One for each of the training.
    base_pictures, base_classes
        How many were trained on.
    features
        (n, dim), of the novel digits by the trained network.
    labels
        (n,), their names.
    pictures
        (n, size, size) uint8, the novel digits as the network was given them, ink as high values.
    """

    epochs: tuple[Epoch, ...]
    base_pictures: int
    base_classes: int
    features: NDArray[Any]
    labels: NDArray[Any]
    pictures: NDArray[np.uint8]

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """(n, size * size), the pictures as features of their own."""
        return self.pictures.reshape(len(self.pictures), -1)


def learn(
    plan: Plan,
    report: Callable[[StepReport], None] | None = None,
    epoch_report: Callable[[dict[str, Any]], None] | None = None,
) -> Learned:
    """Train on the base digits and take the features of the novel ones; no file is left.

    Parameters
    ----------
    plan
        Whose recipe to train by.
    report, epoch_report
        As for `protorect.training.train`.
    """
    with TemporaryDirectory(prefix="protorect-demo-") as name:
        folder = Path(name)
        packed = pack_digits(folder)
        run = train(
            packed.path, folder / "run", plan.recipe, report=report, epoch_report=epoch_report
        )
        extract(run.folder, packed.path, folder / "novel.npz", split="test", precision="float32")
        features, labels = load_features(folder / "novel.npz")
        base = packed.split("train")
        return Learned(
            epochs=tuple(Epoch(line["loss"], line["accuracy"]) for line in run.epochs_logged()),
            base_pictures=len(base.labels),
            base_classes=len(base.class_names),
            features=features,
            labels=labels,
            pictures=np.array(packed.split("test").images[..., 0]),  # grey: all channels are alike
        )


def pack_digits(folder: Path) -> PackedDataset:
    """The digits as a folder of class folders, train and test, packed into `folder`/packed."""
    digits = load_digits()
    for number, (grey, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        pixels = np.rint(grey * (255 / _BRIGHTEST)).astype(np.uint8)
        if label in BASE:
            for turn in range(TURNS):
                of_class = folder / "digits" / "train" / f"{label} turned {90 * turn}"
                _save(of_class, number, np.rot90(pixels, turn))
        else:
            _save(folder / "digits" / "test" / str(label), number, pixels)
    return prepare("folder", folder / "digits", folder / "packed", size=SIZE, workers=1)


def _save(folder: Path, number: int, pixels: NDArray[np.uint8]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.ascontiguousarray(pixels)).save(folder / f"{number:04d}.png")
