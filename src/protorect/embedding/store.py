"""Feature files and feature stores, and what their features were made by.

A feature file is a .npz file. A feature store is a folder for large sets, memory-mapped when read:

    features.npy        (n, dim), floating point
    labels.npy          (n,) int64, indices into the class names
    class_names.json    a list of names
    groups.npy          (n,), numbers or strings; optional
    manifest.json       shape, and what the features were made by
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from protorect._utils.arrays import create_array, load_arrays, map_array
from protorect._utils.documents import COUNT, parse_json, read_json
from protorect._utils.files import write_text
from protorect._utils.manifest import MANIFEST, FolderFormat, differences, read_manifest
from protorect.errors import DataError

FEATURES, LABELS, CLASS_NAMES = "features.npy", "labels.npy", "class_names.json"
GROUPS = "groups.npy"
_DTYPES = {"float16", "float32", "float64"}
_MANIFEST = {"shape": (COUNT, COUNT), "dtype": _DTYPES, "made_by": dict}
_REMEDY = "Remove it and extract again."
_REWRITE = "Remove it, or write the group of every row: numbers or strings."
_MAKE = "Give a .npz file or a folder that `protorect extract` made."
_STORE = FolderFormat("feature store", "protorect-features", 1, _MAKE, _REMEDY)


@dataclass(frozen=True, eq=False)
class FeatureStore:
    """The contents of a feature store."""

    features: NDArray[Any]  # (n, dim), memory-mapped
    labels: NDArray[np.int64]  # (n,), indices into `class_names`, memory-mapped
    class_names: tuple[str, ...]
    provenance: dict[str, Any]  # digests of weights and pictures, preprocessing, precision
    groups: NDArray[Any] | None = None  # (n,), numbers or strings

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Map the arrays of a store, after checking them against its manifest."""
        path = Path(path)
        manifest = read_manifest(path, _STORE, _MANIFEST)
        (n, dim), dtype = manifest["shape"], manifest["dtype"]
        names, groups = read_json(path / CLASS_NAMES, [str], _REMEDY), path / GROUPS
        return cls(
            map_array(path / FEATURES, dtype, (n, dim), _REMEDY),
            map_array(path / LABELS, "int64", (n,), _REMEDY),
            tuple(names),
            manifest["made_by"],
            map_array(groups, None, (n,), _REWRITE) if groups.exists() else None,
        )


def create_store(
    folder: Path,
    dim: int,
    labels: NDArray[np.int64],
    class_names: Sequence[str],
    provenance: dict[str, Any],
    groups: NDArray[Any] | None = None,
) -> NDArray[np.float32]:
    """Make a store and map its features (n, dim) for writing; its manifest is written last."""
    folder.mkdir()
    features = create_array(folder / FEATURES, "<f4", (len(labels), dim))
    np.save(folder / LABELS, np.asarray(labels, np.int64), allow_pickle=False)
    if groups is not None:
        np.save(folder / GROUPS, groups, allow_pickle=False)
    write_text(folder / CLASS_NAMES, json.dumps(list(class_names), indent=0) + "\n")
    write_manifest(folder, features.shape, provenance)
    return features


def write_manifest(folder: Path, shape: tuple[int, ...], provenance: dict[str, Any]) -> None:
    """Write the manifest of a store with features of this shape, which makes it complete."""
    header = {"format": _STORE.format, "version": _STORE.version}
    contents = {"shape": shape, "dtype": "float32", "made_by": provenance}
    write_text(folder / MANIFEST, json.dumps(header | contents, indent=1) + "\n")


def read_provenance(path: Path) -> dict[str, Any]:
    """What the features in a file or store were made by; empty if that is not recorded."""
    if path.is_dir():
        return FeatureStore.open(path).provenance
    manifest = load_arrays(path, required=(), optional=("manifest",)).get("manifest")
    try:
        return dict(parse_json(str(manifest), dict))
    except ValueError:
        return {}


def check_provenance(path: Path, stored: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raise DataError if the features at `path` were not made by what is expected."""
    differ = differences(stored, expected) if stored else "it has no record of its origin"
    if differ:
        raise DataError(
            f"{path} exists already and has another origin: {differ}. Remove it or give another "
            "name."
        )


def is_extracted(out: Path, provenance: dict[str, Any], contents: Callable[[], str]) -> bool:
    """Whether `out` holds these features; DataError if it is neither them nor an empty folder.

    If the provenance has the digest of files that were changed, moved or copied since, that of
    their `contents` decides.
    """
    if not out.exists() or (is_store(out) and out.is_dir() and not any(out.iterdir())):
        return False
    if is_store(out) != out.is_dir():
        raise DataError(
            f"{out} is a {'folder' if out.is_dir() else 'file'}. Remove it or give another name; "
            "that of a feature file ends in .npz, any other name is that of a folder."
        )
    stored = read_provenance(out)
    if stored.get("files") != provenance.get("files"):
        provenance = provenance | {"files": stored.get("files"), "pictures": contents()}
    check_provenance(out, stored, provenance)
    return True


def is_store(out: Path) -> bool:
    """Whether features of this name are a store; a feature file ends in .npz."""
    return out.suffix.lower() != ".npz"
