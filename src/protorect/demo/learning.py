"""From digits to features, with the steps of the commands: prepare, train on five, extract.

The pictures are scikit-learn's 1797 digits of 8 x 8 gray values; they come with the package.
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
from protorect.embedding.extract import extract
from protorect.evaluation.features import load_features
from protorect.training import train
from protorect.training.loop import StepReport

SIZE = 48  # of the packed pictures: four poolings leave 3 x 3 positions
TURNS = 4  # rotations of a base digit by 90 degrees, each a class of its own, as with Omniglot
_WHITE = 16  # the highest of scikit-learn's gray values


class Epoch(NamedTuple):
    """Training loss and accuracy in percent of an epoch."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Learned:
    """The result of the training.

    `features` (n, dim), `labels` (n,) and `pictures` (n, size, size), with ink as high values, are
    those of the novel digits.
    """

    epochs: tuple[Epoch, ...]
    base_pictures: int
    base_classes: int
    features: NDArray[Any]
    labels: NDArray[Any]
    pictures: NDArray[np.uint8]

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """The pictures as features, (n, size * size)."""
        return self.pictures.reshape(len(self.pictures), -1)


def learn(
    plan: Plan,
    report: Callable[[StepReport], None] | None = None,
    epoch_report: Callable[[dict[str, Any]], None] | None = None,
) -> Learned:
    """Train on the base digits and extract the features of the novel ones; no file remains.

    `report` and `epoch_report` are those of `protorect.training.train`.
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
            pictures=np.array(packed.split("test").images[..., 0]),  # gray: all channels are equal
        )


def pack_digits(folder: Path) -> PackedDataset:
    """Write the digits as class folders, train and test, and pack them into `folder`/packed."""
    digits = load_digits()
    for number, (gray, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        pixels = np.rint(gray * (255 / _WHITE)).astype(np.uint8)
        if label in BASE:
            for turn in range(TURNS):
                class_folder = folder / "digits" / "train" / f"{label} turned {90 * turn}"
                _save(class_folder, number, np.rot90(pixels, turn))
        else:
            _save(folder / "digits" / "test" / str(label), number, pixels)
    return prepare("folder", folder / "digits", folder / "packed", size=SIZE, workers=1)


def _save(folder: Path, number: int, pixels: NDArray[np.uint8]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.ascontiguousarray(pixels)).save(folder / f"{number:04d}.png")
