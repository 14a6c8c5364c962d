"""A folder of features, for large sets: memory-mapped when read.

features.npy        (n, dim), floating point
labels.npy          (n,) int64, positions in the class names
class_names.json    a list of names
manifest.json       the shape, and what made the features
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect._utils.arrays import map_array
from protorect._utils.files import write_text
from protorect._utils.manifest import MANIFEST, FolderFormat, read_json, read_manifest
from protorect.errors import damaged

FORMAT = "protorect-features"
VERSION = 1
FEATURES, LABELS = "features.npy", "labels.npy"
CLASS_NAMES = "class_names.json"
_DTYPES = ("float16", "float32", "float64")
_REMEDY = "Remove it and extract again."
_MAKE = "Give a .npz file or a folder that `protorect extract` made."
_STORE = FolderFormat("feature store", FORMAT, VERSION, _MAKE, _REMEDY)


@dataclass(frozen=True)
class FeatureStore:
    """What a store holds.

    Parameters
    ----------
    features
        (n, dim), mapped.
    labels
        (n,) int64, mapped.
    class_names
        What the labels are positions in.
    made_by
        Hashes of weights and pictures, preprocessing, precision.
    """

    features: NDArray[Any]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    made_by: dict[str, Any]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> FeatureStore:
        """Map a store, after checking that its files are what the manifest says."""
        path = Path(path)
        manifest = read_manifest(path, _STORE)
        try:
            n, dim = (int(number) for number in manifest["shape"])
            dtype, made_by = manifest["dtype"], dict(manifest["made_by"])
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path / MANIFEST, "it lacks what a store holds", _REMEDY) from error
        if dtype not in _DTYPES:
            raise damaged(path / MANIFEST, f"features cannot be {dtype!r}", _REMEDY)
        names = read_json(path / CLASS_NAMES, _REMEDY)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise damaged(path / CLASS_NAMES, "it is not a list of names", _REMEDY)
        return cls(
            map_array(path / FEATURES, dtype, (n, dim), _REMEDY),
            map_array(path / LABELS, "int64", (n,), _REMEDY),
            tuple(names),
            made_by,
        )


def write_labels(folder: Path, labels: NDArray[np.int64], class_names: Sequence[str]) -> None:
    """Write labels (n,) and names into a store to be."""
    np.save(folder / LABELS, np.asarray(labels, np.int64), allow_pickle=False)
    write_text(folder / CLASS_NAMES, json.dumps(list(class_names), indent=0) + "\n")


def write_manifest(
    folder: Path, shape: tuple[int, int], dtype: str, made_by: dict[str, Any]
) -> None:
    """Write the manifest; without it a folder is no store."""
    manifest = {"format": FORMAT, "version": VERSION, "shape": list(shape), "dtype": dtype}
    text = json.dumps(manifest | {"made_by": made_by}, indent=1)
    write_text(folder / MANIFEST, text + "\n")
