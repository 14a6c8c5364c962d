"""miniImageNet in the three forms in which it goes around."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.datasets.layouts.class_folders import find_class_folders
from protorect.datasets.layouts.found import Found, Pictures
from protorect.datasets.layouts.raw import store_raw, text
from protorect.datasets.pickles import load_plain_pickle
from protorect.datasets.splits import SPLITS, ClassSplit
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.stored import StoredPicture

_CACHE = "mini-imagenet-cache-{}.pkl"


def find_mini_imagenet(root: Path, scratch: Path, split: ClassSplit | None) -> Found:
    """The Ravi CSV files beside the pictures, the three cache pickles, or class folders."""
    tables = [root / f"{name}.csv" for name in SPLITS]
    caches = [root / _CACHE.format(name) for name in SPLITS]
    if any(table.is_file() for table in tables):
        return _from_tables(root, tables, scratch)
    if any(cache.is_file() for cache in caches):
        return _from_caches(root, caches, scratch)
    return find_class_folders(root, scratch, split)


def _from_tables(root: Path, tables: list[Path], scratch: Path) -> Found:
    _require(root, tables)
    listing = list_pictures(root, scratch)
    by_name = {picture.path.split("/")[-1]: picture for picture in listing.pictures}
    pictures: Pictures = {}
    for table in tables:
        for name, label in _rows(table):
            absent = StoredPicture(name, str(root / name), 0, error=f"in {table.name}, not found")
            pictures.setdefault(label, []).append(by_name.pop(name, absent))
    unlisted = tuple(picture.path for picture in by_name.values())
    return Found(pictures, listing.other_files + unlisted)


def _rows(table: Path) -> list[tuple[str, str]]:
    try:
        with table.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [(row["filename"], row["label"]) for row in rows]
    except (KeyError, csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{table} should be a CSV file with the columns filename,label.") from error
    except OSError as error:
        raise DataError(f"cannot read {table}: {error.strerror or error}.") from error


def _from_caches(root: Path, caches: list[Path], scratch: Path) -> Found:
    _require(root, caches)
    pictures: Pictures = {}
    for cache in caches:
        pixels, classes = _cache(cache)
        stored = store_raw(pixels, cache.name, scratch)
        for name, rows in classes.items():
            pictures.setdefault(name, []).extend(stored[row] for row in rows)
    return Found(pictures)


def _cache(path: Path) -> tuple[NDArray[np.uint8], dict[str, list[int]]]:
    """`image_data` (n, 84, 84, 3) uint8 and `class_dict`: class name -> row numbers."""
    document: Any = load_plain_pickle(path)
    expected = "a dict of image_data (n, height, width, 3) uint8 and class_dict"
    if not isinstance(document, Mapping):
        raise DataError(f"{path} should hold {expected}; it holds a {type(document).__name__}.")
    document = {text(key): value for key, value in document.items()}
    pixels, classes = document.get("image_data"), document.get("class_dict")
    if not isinstance(pixels, np.ndarray) or not isinstance(classes, Mapping):
        raise DataError(f"{path} should hold {expected}; it has {', '.join(sorted(document))}.")
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[-1] != 3:
        raise DataError(
            f"{path} should hold {expected}; image_data is {pixels.dtype} {pixels.shape}."
        )
    rows = {text(name): _whole_numbers(value) for name, value in classes.items()}
    beyond = [name for name, at in rows.items() if at and not 0 <= min(at) <= max(at) < len(pixels)]
    if beyond:
        raise DataError(f"{path}: class {beyond[0]} has rows beyond its {len(pixels)} pictures.")
    return pixels, rows


def _whole_numbers(values: Any) -> list[int]:
    return [int(value) for value in np.asarray(values, dtype=np.int64).ravel()]


def _require(root: Path, files: list[Path]) -> None:
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        wanted = ", ".join(file.name for file in files)
        raise DataError(f"{root} should hold {wanted} together; {', '.join(missing)} is missing.")
