"""The feature files that experiments read, and the commands that make missing ones.

A folder has one file per data set, backbone and split, such as `omniglot-conv64-test.npz`, written
by `protorect extract`. The manifest in the file must agree with the file's name, and validation and
test features must come from the same weights. Fine-tuning a network also needs the packed pictures
and the training run; they are expected in two more folders, under names such as `omniglot` and
`omniglot-conv64`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protorect.backbones.registry import BACKBONES
from protorect.embedding.store import read_provenance
from protorect.errors import DataError
from protorect.evaluation.features import load_features
from protorect.evaluation.fine_tuned import Pictures

SPLITS = ("val", "test")
_PROVENANCE = ("data", "split", "backbone", "weights", "pictures", "precision")


class FeatureSet(NamedTuple):
    """The features of one data set by one backbone."""

    dataset: str
    backbone: str

    @property
    def name(self) -> str:
        """How its files and its training run are called, such as "omniglot-conv64"."""
        return f"{self.dataset}-{self.backbone}"

    @property
    def pretrained(self) -> bool:
        """Whether the backbone comes with weights, so that it is not trained here."""
        return BACKBONES[self.backbone].pretrained

    def file(self, split: str) -> str:
        """Name of the file of a split."""
        return f"{self.name}-{split}.npz"


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """Features (n, dim) and labels (n,) of one file, and the manifest that says what made them."""

    name: str
    features: NDArray[Any]
    labels: NDArray[Any]
    manifest: dict[str, Any]

    def provenance(self) -> dict[str, Any]:
        """Name, hash of the values and origin, to be stored with a result."""
        digest = hashlib.sha256(np.ascontiguousarray(self.features).tobytes())
        digest.update("\n".join(map(str, self.labels.tolist())).encode())
        origin = {name: self.manifest[name] for name in _PROVENANCE if name in self.manifest}
        return {"file": self.name, "sha256": digest.hexdigest(), **origin}


@dataclass(frozen=True)
class FeatureFolder:
    """A folder of feature files, one of packed pictures and one of training runs."""

    path: Path = Path("features")
    data: Path = Path("data")
    runs: Path = Path("runs")

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

    def network(self, features: FeatureSet) -> Path:
        """Where the training run is expected, or the name of a pretrained backbone."""
        return Path(features.backbone) if features.pretrained else self.runs / features.name

    def has_pictures(self, features: FeatureSet) -> bool:
        """Whether the packed pictures and the training run exist."""
        network = features.pretrained or self.network(features).exists()
        return network and self.packed(features).exists()

    def pictures(self, features: FeatureSet) -> Pictures:
        """Load the network and the pictures of the test features; raise DataError for others."""
        path = self.path / features.file("test")
        return Pictures.behind(path, self.network(features), self.packed(features))

    def commands(self, missing: Sequence[tuple[FeatureSet, Sequence[str]]]) -> list[str]:
        """Commands that prepare the data, train and extract these splits of these feature sets."""
        prepare, train, extract = [], [], []
        for features, splits in missing:
            packed, network = self.packed(features), self.network(features)
            root = features.dataset.upper().replace("-", "_")
            prepare.append(f"protorect prepare {features.dataset} {root} --out {packed}")
            if not features.pretrained:
                config = Path("configs") / f"{features.name}.toml"
                recipe = (
                    f"--config {config}" if config.exists() else f"--backbone {features.backbone}"
                )
                train.append(f"protorect train {packed} {recipe} --out {network}")
            for split in splits:
                out = self.path / features.file(split)
                extract.append(f"protorect extract {network} {packed} --split {split} --out {out}")
        return list(dict.fromkeys([*prepare, *train, *extract]))

    def _load_split(self, features: FeatureSet, split: str) -> FeatureFile:
        path = self.path / features.file(split)
        manifest = read_provenance(path)
        if not manifest:
            raise DataError(
                f"{path} does not say what made it. Write it with `protorect extract`, which does."
            )
        expected = {"data": features.dataset, "backbone": features.backbone, "split": split}
        for name, value in expected.items():
            if manifest.get(name) != value:
                raise DataError(
                    f"{path}: its {name} is {manifest.get(name)!r}, not {value!r} as its name "
                    "says. Remove it, or extract it again from the right run."
                )
        return FeatureFile(path.name, *load_features(path), manifest)
