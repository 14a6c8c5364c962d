"""Where experiments find features, and the commands that make those that are missing.

A folder holds one file for each data set, backbone and split, such as
`omniglot-conv64-test.npz`, written by `protorect extract`. Its manifest must say the same as its
name, and validation and test features must come from the same weights. What fine-tunes the network
finds the packed pictures and the run that made them in two more folders, under names such as
`omniglot` and `omniglot-conv64`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect._utils.arrays import load_arrays
from protorect.backbones.registry import BACKBONES
from protorect.errors import DataError
from protorect.evaluation.features import load_features
from protorect.evaluation.fine_tuned import Pictures

SPLITS = ("val", "test")


@dataclass(frozen=True, order=True)
class Source:
    """Features of one data set by one backbone."""

    dataset: str
    backbone: str

    @property
    def name(self) -> str:
        """As files are called."""
        return f"{self.dataset}-{self.backbone}"

    def file(self, split: str) -> str:
        """Name of the file of a split."""
        return f"{self.name}-{split}.npz"


@dataclass(frozen=True)
class FeatureFile:
    """The features (n, dim) and labels (n,) of one file, and what made them."""

    name: str
    features: NDArray[Any]
    labels: NDArray[Any]
    manifest: dict[str, Any]

    def origin(self) -> dict[str, Any]:
        """What a result keeps of it: its name, what made it, and a hash of its values."""
        digest = hashlib.sha256(np.ascontiguousarray(self.features).tobytes())
        digest.update("\n".join(map(str, self.labels.tolist())).encode())
        kept = ("data", "split", "backbone", "weights", "pictures", "precision")
        made = {name: self.manifest[name] for name in kept if name in self.manifest}
        return {"file": self.name, "sha256": digest.hexdigest(), **made}


@dataclass(frozen=True)
class SourceFeatures:
    """The validation and the test features of a source, and the folder they come from."""

    source: Source
    val: FeatureFile
    test: FeatureFile
    folder: FeatureFolder


@dataclass(frozen=True)
class FeatureFolder:
    """A folder of feature files, one of packed pictures and one of runs."""

    path: Path
    data: Path = Path("data")
    runs: Path = Path("runs")

    def has(self, source: Source) -> bool:
        """Whether the features of both splits are there."""
        return not self.missing(source)

    def missing(self, source: Source) -> list[str]:
        """The splits whose file is not there."""
        return [split for split in SPLITS if not (self.path / source.file(split)).exists()]

    def open(self, source: Source) -> SourceFeatures:
        """Read both splits; a file of something else, or of other weights, is refused."""
        val, test = (self._read(source, split) for split in SPLITS)
        if val.manifest.get("weights") != test.manifest.get("weights"):
            raise DataError(
                f"{val.name} and {test.name} were made by different weights. Extract both splits "
                "with the same run."
            )
        return SourceFeatures(source, val, test, self)

    def packed(self, source: Source) -> Path:
        """Where the packed pictures of a source belong."""
        return self.data / source.dataset

    def network(self, source: Source) -> Path:
        """Where the run of a source belongs, or the name of a pretrained backbone."""
        pretrained = BACKBONES[source.backbone].pretrained
        return Path(source.backbone) if pretrained else self.runs / source.name

    def has_pictures(self, source: Source) -> bool:
        """Whether the packed pictures and the run that made the features are there."""
        pretrained = BACKBONES[source.backbone].pretrained
        return self.packed(source).exists() and (pretrained or self.network(source).exists())

    def pictures(self, source: Source) -> Pictures:
        """The network and the pictures behind the test features; any others are refused."""
        path = self.path / source.file("test")
        return Pictures.behind(path, self.network(source), self.packed(source))

    def _read(self, source: Source, split: str) -> FeatureFile:
        path = self.path / source.file(split)
        manifest = _manifest(path)
        wanted = {"data": source.dataset, "backbone": source.backbone, "split": split}
        for name, value in wanted.items():
            if manifest.get(name) != value:
                raise DataError(
                    f"{path}: its {name} is {manifest.get(name)!r}, not {value!r} as its name "
                    "says. Remove it, or extract it again from the right run."
                )
        return FeatureFile(path.name, *load_features(path), manifest)


DEFAULT_FOLDER = FeatureFolder(Path("features"))


def commands(
    source: Source, folder: FeatureFolder = DEFAULT_FOLDER, splits: Sequence[str] = SPLITS
) -> list[str]:
    """What to run to have the pictures, the run and the features of a source in their folders."""
    packed, network = folder.packed(source), folder.network(source)
    root = source.dataset.upper().replace("-", "_")
    lines = [f"protorect prepare {source.dataset} {root} --out {packed}"]
    if not BACKBONES[source.backbone].pretrained:
        config = Path("configs") / f"{source.name}.toml"
        recipe = f"--config {config}" if config.exists() else f"--backbone {source.backbone}"
        lines.append(f"protorect train {packed} {recipe} --out {network}")
    for split in splits:
        out = folder.path / source.file(split)
        lines.append(f"protorect extract {network} {packed} --split {split} --out {out}")
    return lines


def _manifest(path: Path) -> dict[str, Any]:
    held = load_arrays(path, required=("features",), optional=("manifest",)).get("manifest")
    try:
        manifest = json.loads(str(held))
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict):
        raise DataError(
            f"{path} does not say what made it. Write it with `protorect extract`, which does."
        )
    return manifest
