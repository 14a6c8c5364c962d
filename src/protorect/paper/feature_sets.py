"""The feature files that experiments read, and the commands that make missing ones.

A folder has one file per data set, backbone and split, such as `omniglot-conv64-test.npz`, written
by `protorect extract`. The manifest in the file must agree with the file's name, and validation and
test features must come from the same weights. In the place of a backbone there may be the name of a
network that is not trained on the data set, such as `meta-omniglot-mini-conv64-test.npz`.
Fine-tuning a network also needs the packed pictures and the training run; they are expected in two
more folders, under names such as `omniglot` and `omniglot-conv64`. Weights that come with the
package need no run.

`datasets` in experiments.toml says how the data sets of the paper are prepared.
"""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.registry import BACKBONES
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.store import read_provenance
from protorect.errors import DataError
from protorect.evaluation.features import read_features
from protorect.evaluation.fine_tuned import Pictures
from protorect.paper.networks import trained_on
from protorect.paper.published import load_toml

SPLITS = ("val", "test")
_PROVENANCE = ("data", "split", "crop", "backbone", "weights", "pictures", "precision")
DATASETS: dict[str, dict[str, str]] = load_toml("experiments.toml")["datasets"]


class FeatureSet(NamedTuple):
    """The features of one data set by one backbone, or by a network that has another name."""

    dataset: str
    backbone: str
    run: str = ""  # a further training of the same backbone, such as "seed1" or "paper"

    @property
    def data(self) -> str:
        """Name of the data set in the catalogue."""
        return DATASETS[self.dataset].get("data", self.dataset)

    @property
    def recipe(self) -> str:
        """How its recipe and its packaged weights are called, such as "mini-conv64"."""
        return self._named(DATASETS[self.dataset].get("recipe", self.dataset))

    @property
    def name(self) -> str:
        """How its files and its training run are called, such as "omniglot-conv64-seed1"."""
        return self._named(self.dataset)

    @property
    def pretrained(self) -> bool:
        """Whether the network has weights already, so that it is not trained here."""
        return self.backbone not in BACKBONES or BACKBONES[self.backbone].pretrained

    def file(self, split: str) -> str:
        """Name of the file of a split."""
        return f"{self.of(split).name}-{split}.npz"

    def of(self, split: str) -> "FeatureSet":
        """The feature set that this split is taken from; Z may be chosen on another data set."""
        if split != "val":
            return self
        return self._replace(dataset=DATASETS[self.dataset].get("validation", self.dataset))

    def _named(self, dataset: str) -> str:
        return "-".join(filter(None, (dataset, self.backbone, self.run)))


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """Features (n, dim), labels (n,) and groups (n,) of a file, and what made them."""

    name: str
    features: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    manifest: dict[str, Any]
    feature_set: FeatureSet  # as its name says

    def provenance(self) -> dict[str, Any]:
        """Name, hash of the values and origin, to be stored with a result."""
        digest = hashlib.sha256(np.ascontiguousarray(self.features).tobytes())
        digest.update("\n".join(map(str, self.labels.tolist())).encode())
        origin = {name: self.manifest[name] for name in _PROVENANCE if name in self.manifest}
        # Which of the data sets that are prepared from the same pictures.
        origin["data"] = self.feature_set.dataset
        if self.feature_set.backbone != origin.get("backbone"):
            origin["network"] = self.feature_set.backbone
        return {"file": self.name, "sha256": digest.hexdigest(), **origin}


@dataclass(frozen=True)
class FeatureFolder:
    """A folder of feature files, one of packed pictures and one of training runs."""

    path: Path = Path("features")
    data: Path = Path("data")
    runs: Path = Path("runs")
    networks: Mapping[str, str] = field(default_factory=dict)  # sources that the user chose

    def missing_splits(self, features: FeatureSet) -> list[str]:
        """The splits that have no file."""
        return [split for split in SPLITS if not (self.path / features.file(split)).exists()]

    def load(self, features: FeatureSet) -> tuple[FeatureFile, FeatureFile]:
        """Load validation and test features; raise DataError if a file does not match its name."""
        val, test = (self._load_split(features, split) for split in SPLITS)
        if val.manifest.get("weights") != test.manifest.get("weights"):
            raise DataError(
                f"{val.name} and {test.name} were made by different weights. Extract both splits "
                "with the same run."
            )
        return val, test

    def packed(self, features: FeatureSet) -> Path:
        """Where the packed pictures are expected."""
        return self.data / features.dataset

    def packaged(self, features: FeatureSet) -> str | None:
        """Source of a network that has weights; None where there is a run, or one is needed."""
        if features.pretrained:
            return self.networks.get(features.backbone, features.backbone)
        known = features.recipe in pretrained_weights()
        return features.recipe if known and not (self.runs / features.name).exists() else None

    def network(self, features: FeatureSet) -> str:
        """The network as `protorect extract` takes it: the training run, or its source."""
        return self.packaged(features) or str(self.runs / features.name)

    def trained_on(self, features: FeatureSet, test: FeatureFile) -> str | None:
        """What the network was trained on, if it is not trained on the data set itself."""
        if not features.pretrained:
            return None
        digest = str(test.manifest.get("weights"))
        return trained_on(features.backbone, self.network(features), digest)

    def has_pictures(self, features: FeatureSet) -> bool:
        """Whether the packed pictures and the network that made the features exist."""
        if not self.packed(features).exists():
            return False
        name = self.packaged(features)
        if name is None or features.pretrained:
            return name is not None or Path(self.network(features)).exists()
        stored = read_provenance(self.path / features.file("test"))
        return stored.get("weights") == TrainedBackbone.load(name).digest

    def pictures(self, features: FeatureSet) -> Pictures:
        """Load the network and the pictures of the test features; raise DataError for others."""
        path = self.path / features.file("test")
        return Pictures.behind(path, self.network(features), self.packed(features))

    def steps(
        self, features: FeatureSet, splits: Sequence[str], root: str | None = None
    ) -> list[list[str]]:
        """Arguments of `protorect` that prepare the pictures in `root`, train, extract splits."""
        network, steps = self.network(features), []
        for one in dict.fromkeys(features.of(split) for split in splits or ("test",)):
            options = DATASETS[one.dataset].get("options", "").split()
            source = root or one.data.upper().replace("-", "_")
            steps.append(["prepare", one.data, source, *options, "--out", str(self.packed(one))])
        if not self.packaged(features):
            steps.append(
                ["train", str(self.packed(features)), *_recipe(features), "--out", network]
            )
        for split in splits:
            packed, out = str(self.packed(features.of(split))), self.path / features.file(split)
            steps.append(["extract", network, packed, "--split", split, "--out", str(out)])
        return steps

    def commands(self, missing: Sequence[tuple[FeatureSet, Sequence[str]]]) -> list[str]:
        """Commands that prepare the data, train and extract these splits of these feature sets."""
        steps = [step for features, splits in missing for step in self.steps(features, splits)]
        steps.sort(key=lambda step: ("prepare", "train", "extract").index(step[0]))
        return list(dict.fromkeys(shlex.join(["protorect", *step]) for step in steps))

    def _load_split(self, wanted: FeatureSet, split: str) -> FeatureFile:
        features = wanted.of(split)
        path = self.path / features.file(split)
        manifest = read_provenance(path)
        if not manifest:
            raise DataError(
                f"{path} does not say what made it. Write it with `protorect extract`, which does."
            )
        expected = {"data": features.data, "split": split}
        if features.backbone in BACKBONES:
            expected["backbone"] = features.backbone
        for name, value in expected.items():
            if manifest.get(name) != value:
                raise DataError(
                    f"{path}: its {name} is {manifest.get(name)!r}, not {value!r} as its name "
                    "says. Remove it, or extract it again from the right run."
                )
        options, crop = DATASETS[features.dataset].get("options", ""), manifest.get("crop")
        if crop and "--crop" in options and (crop == "none") != ("none" in options):
            raise DataError(
                f"{path}: its pictures have crop {crop!r}; {features.dataset} is prepared with "
                f"{options}. Remove it, or extract it from the right pictures."
            )
        return FeatureFile(path.name, *read_features(path), manifest, features)


def _recipe(features: FeatureSet) -> list[str]:
    """Options of `protorect train`: the committed recipe, and the seed of a run of another seed."""
    seed = features.run.removeprefix("seed") if features.run.startswith("seed") else ""
    name = features._replace(run="").recipe if seed else features.recipe
    config = Path("configs") / f"{name}.toml"
    recipe = ["--config", str(config)] if config.exists() else ["--backbone", features.backbone]
    return [*recipe, "--set", f"seed={seed}"] if seed else recipe
