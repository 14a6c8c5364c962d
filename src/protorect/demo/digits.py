"""The experiment of the demonstration: prepare, train on five digits, evaluate on the other five.

The pictures are scikit-learn's 1797 digits of 8 x 8 gray values; they come with the package.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from protorect._utils.parameters import Parameters, parameter
from protorect._utils.progress import Progress, part_of
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import prepare
from protorect.embedding.extract import extract
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.features import load_features
from protorect.evaluation.sampling import sample_episodes
from protorect.methods import PAPER
from protorect.paper.figures import ByShot, Curves, accuracy_over_z
from protorect.paper.published import SHOTS
from protorect.training.config import TrainingConfig
from protorect.training.loop import StepReport, train

BASE, NOVEL = (0, 1, 2, 3, 4), (5, 6, 7, 8, 9)  # the first half to train on, the second to test on
WAY, QUERY = len(NOVEL), 15
# SIZE, TURNS and the rate were tuned with the halves swapped: trained on 5 to 9, tested on 0 to 4.
SIZE = 48  # side of the packed pictures; conv64 pools it four times, to 3 x 3 positions
TURNS = 4  # rotations of a base digit by 90 degrees, each a class of its own, as with Omniglot
_WHITE = 16  # the highest of scikit-learn's gray values
_STEPS, _BATCH, _HIGHEST_RATE = 20, 64, 0.02


class DemoOptions(Parameters):
    """The size of the demonstration."""

    episodes: int = parameter(600, "Number of episodes.", minimum=1)
    epochs: int = parameter(8, "Number of training epochs.", minimum=1)
    seed: int = parameter(0, "Random seed of training and episodes.")


class Plan(NamedTuple):
    """The training recipe and the episodes of the novel digits, all from one seed."""

    seed: int
    recipe: TrainingConfig
    episodes: Episodes

    @classmethod
    def of(cls, episodes: int, epochs: int, seed: int = 0) -> Self:
        """Plan this many episodes and epochs; raise OptionError if a number is invalid."""
        recipe = TrainingConfig(
            backbone="conv64",
            seed=seed,
            epochs=epochs,
            batch_size=_BATCH,
            steps_per_epoch=_STEPS,
            rates=((0, _HIGHEST_RATE / 10), (0.3 * epochs, _HIGHEST_RATE), (epochs, 0)),
            between_rates="linear",
            flip=False,  # a mirrored digit is not a digit
            precision="float32",
        )
        labels = load_digits().target
        novel = np.sort(labels[np.isin(labels, NOVEL)])  # in the packed order: class by class
        sampled = sample_episodes(
            novel, way=WAY, shot=max(SHOTS), query=QUERY, episodes=episodes, seed=seed
        )
        return cls(seed, recipe, sampled)


@dataclass(frozen=True, eq=False)
class Learned:
    """The result of the training, and the novel digits."""

    losses: list[float]  # mean of each epoch
    accuracies: list[float]  # of each epoch on the base classes, in percent
    base_pictures: int
    base_classes: int
    features: NDArray[Any]  # (n, dim)
    labels: NDArray[Any]  # (n,)
    pictures: NDArray[np.uint8]  # (n, size, size), bright strokes on black


@dataclass(frozen=True)
class DemoResult:
    """The measurements of the demonstration."""

    plan: Plan
    learned: Learned
    by_pixels: ByShot  # results of the paper's methods on pixels
    by_network: ByShot  # the same on features of the trained network
    over_z: Curves  # results of bd-i for every Z
    against_z: Mapping[str, Any]  # plot data: accuracy at each Z, measured and by eq. (25)


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
        base, epochs = packed.split("train"), run.epochs_logged()
        return Learned(
            losses=[line["loss"] for line in epochs],
            accuracies=[line["accuracy"] for line in epochs],
            base_pictures=len(base.labels),
            base_classes=len(base.class_names),
            features=features,
            labels=labels,
            pictures=np.array(packed.split("test").images[..., 0]),  # gray: all channels are equal
        )


def pack_digits(folder: Path) -> PackedDataset:
    """Write class folders of digits, in train/ and test/, and pack them into `folder`/packed."""
    digits = load_digits()
    for number, (gray, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        pixels = np.rint(gray * (255 / _WHITE)).astype(np.uint8)
        classes = {f"test/{label}": 0}  # class folder: number of quarter turns
        if label in BASE:
            classes = {f"train/{label} turned {90 * turn}": turn for turn in range(TURNS)}
        for name, turn in classes.items():
            path = folder / "digits" / name / f"{number:04d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.ascontiguousarray(np.rot90(pixels, turn))).save(path)
    return prepare("folder", folder / "digits", folder / "packed", size=SIZE, workers=1)


def measure(plan: Plan, learned: Learned, progress: Progress | None = None) -> DemoResult:
    """Evaluate the paper's methods on pixels and on features, and bd-i over Z."""
    features, labels, episodes = learned.features, learned.labels, plan.episodes
    pixels = learned.pictures.reshape(len(labels), -1)
    half = len(episodes) * len(SHOTS)
    first, second = (part_of(progress, start, 2 * half) for start in (0, half))
    results = evaluate(pixels, labels, PAPER, shot=SHOTS, episodes=episodes, progress=first)
    by_pixels = {(one.method, one.shot): one for one in results}
    by_network, over_z, against_z = accuracy_over_z(features, labels, PAPER, episodes, second)
    return DemoResult(plan, learned, by_pixels, by_network, over_z, against_z)
