"""The feature files that experiments read, and the commands that make missing ones.

A folder has one file per data set, backbone and split, such as `omniglot-conv64-test.npz`, written
by `protorect extract`. The manifest in the file must agree with the file's name, and validation and
test features must come from the same weights. In the place of a backbone there may be the name of a
network that is not trained on the data set, such as `meta-omniglot-mini-conv64-test.npz`.
Fine-tuning a network also needs the packed pictures and the training run; they are expected in two
more folders, under names such as `omniglot` and `omniglot-conv64`.
"""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protorect.backbones.registry import BACKBONES
from protorect.embedding.store import read_provenance
from protorect.errors import DataError
from protorect.evaluation.features import read_features
from protorect.evaluation.fine_tuned import Pictures
from protorect.paper.networks import Network

SPLITS = ("val", "test")
_PROVENANCE = ("data", "split", "crop", "backbone", "weights", "pictures", "precision")
# Data sets without validation classes, and the one whose validation classes are used instead.
_VALIDATION = {"meta-traffic-sign": "meta-vgg-flower"}


class _Prepared(NamedTuple):
    """How a data set is prepared that is not called as `protorect prepare` calls it."""

    dataset: str
    options: str = ""
    crops: frozenset[str] = frozenset()  # which crops its features may have; empty for any


_PREPARED = {
    "cub": _Prepared("cub", crops=frozenset({"boxes", "before"})),
    "cub-whole": _Prepared("cub", " --crop none", frozenset({"none"})),
    "meta-ilsvrc-2012": _Prepared("meta-ilsvrc-2012", " --split ILSVRC_2012_SPLITS.json"),
}


class FeatureSet(NamedTuple):
    """The features of one data set by one backbone, or by a network that has another name."""

    dataset: str
    backbone: str

    @property
    def prepared(self) -> _Prepared:
        """How the data set is prepared."""
        return _PREPARED.get(self.dataset, _Prepared(self.dataset))

    @property
    def validation(self) -> "FeatureSet":
        """The features on whose validation classes Z is chosen."""
        return self._replace(dataset=_VALIDATION.get(self.dataset, self.dataset))

    @property
    def name(self) -> str:
        """How its files and its training run are called, such as "omniglot-conv64"."""
        return f"{self.dataset}-{self.backbone}"

    @property
    def pretrained(self) -> bool:
        """Whether the network has weights already, so that it is not trained here."""
        return self.backbone not in BACKBONES or BACKBONES[self.backbone].pretrained

    def file(self, split: str) -> str:
        """Name of the file of a split."""
        return f"{self.of(split).name}-{split}.npz"

    def of(self, split: str) -> "FeatureSet":
        """The feature set that this split is taken from."""
        return self.validation if split == "val" else self


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """Features (n, dim), labels (n,) and groups (n,) of a file, and what made them."""

    name: str
    features: NDArray[Any]
    labels: NDArray[Any]
    manifest: dict[str, Any]
    feature_set: FeatureSet | None = None  # as its name says
    groups: NDArray[Any] | None = None

    def provenance(self) -> dict[str, Any]:
        """Name, hash of the values and origin, to be stored with a result."""
        digest = hashlib.sha256(np.ascontiguousarray(self.features).tobytes())
        digest.update("\n".join(map(str, self.labels.tolist())).encode())
        origin = {name: self.manifest[name] for name in _PROVENANCE if name in self.manifest}
        if self.feature_set is not None:
            dataset, network = self.feature_set
            origin |= {"data": dataset}  # which of those that are prepared from the same pictures
            if network != origin.get("backbone"):
                origin["network"] = network
        return {"file": self.name, "sha256": digest.hexdigest(), **origin}


@dataclass(frozen=True)
class FeatureFolder:
    """A folder of feature files, one of packed pictures and one of training runs."""

    path: Path = Path("features")
    data: Path = Path("data")
    runs: Path = Path("runs")
    networks: Mapping[str, Network] = field(default_factory=dict)  # that the user chose, by name

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
        """Where the training run is expected, or the source of a network that has weights."""
        return Path(self.source(features)) if features.pretrained else self.runs / features.name

    def source(self, features: FeatureSet) -> str:
        """The source of the network as `protorect extract` takes it."""
        if not features.pretrained:
            return str(self.runs / features.name)
        return self.networks.get(features.backbone, Network.of(features.backbone)).source

    def trained_on(self, features: FeatureSet, test: FeatureFile) -> str | None:
        """What the network was trained on, if it is not trained on the data set itself."""
        if not features.pretrained:
            return None
        network = self.networks.get(features.backbone, Network.of(features.backbone))
        return network.trained_on(str(test.manifest.get("weights")))

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
            for one in dict.fromkeys(features.of(split) for split in splits or ("test",)):
                prepare.append(self._prepare_command(one))
            network = shlex.quote(self.source(features))
            if not features.pretrained:
                config = Path("configs") / f"{features.name}.toml"
                recipe = (
                    f"--config {config}" if config.exists() else f"--backbone {features.backbone}"
                )
                train.append(f"protorect train {self.packed(features)} {recipe} --out {network}")
            for split in splits:
                packed, out = self.packed(features.of(split)), self.path / features.file(split)
                extract.append(f"protorect extract {network} {packed} --split {split} --out {out}")
        return list(dict.fromkeys([*prepare, *train, *extract]))

    def _prepare_command(self, features: FeatureSet) -> str:
        dataset, options, _ = features.prepared
        root = dataset.upper().replace("-", "_")
        return f"protorect prepare {dataset} {root}{options} --out {self.packed(features)}"

    def _load_split(self, wanted: FeatureSet, split: str) -> FeatureFile:
        features = wanted.of(split)
        path = self.path / features.file(split)
        manifest = read_provenance(path)
        if not manifest:
            raise DataError(
                f"{path} does not say what made it. Write it with `protorect extract`, which does."
            )
        dataset, _, crops = features.prepared
        expected = {"data": dataset, "split": split}
        if features.backbone in BACKBONES:
            expected["backbone"] = features.backbone
        for name, value in expected.items():
            if manifest.get(name) != value:
                raise DataError(
                    f"{path}: its {name} is {manifest.get(name)!r}, not {value!r} as its name "
                    "says. Remove it, or extract it again from the right run."
                )
        crop = manifest.get("crop")
        if crops and crop is not None and crop not in crops:
            raise DataError(
                f"{path}: its pictures have crop {crop!r}; {features.dataset} has "
                f"{' or '.join(sorted(crops))}. Remove it, or extract it from the right pictures."
            )
        rows, labels, groups = read_features(path)
        return FeatureFile(path.name, rows, labels, manifest, features, groups)
