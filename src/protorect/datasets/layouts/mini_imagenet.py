"""miniImageNet in the forms in which it is distributed."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protorect._utils.tables import read_table
from protorect._utils.text import on_one_line
from protorect.datasets.layouts import (
    DatasetPictures,
    PicturesByClass,
    class_folders,
    mini_imagenet_zips,
)
from protorect.datasets.pickles import as_text, load_pickled_dict, store_raw
from protorect.datasets.splits import SPLITS, ClassSplit
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.stored import StoredPicture


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find Ravi's tables beside the pictures, three cache pickles, three zips, or class folders."""
    tables = [root / f"{name}.csv" for name in SPLITS]
    caches = [root / f"mini-imagenet-cache-{name}.pkl" for name in SPLITS]
    zips = [root / f"{name}.zip" for name in SPLITS]
    from_zips = partial(mini_imagenet_zips.find_classes, split=split)
    for read, files in ((_from_tables, tables), (_from_caches, caches), (from_zips, zips)):
        missing = [file.name for file in files if not file.is_file()]
        if not missing:
            return read(files, scratch)
        if len(missing) < len(files):
            expected = ", ".join(file.name for file in files)
            raise DataError(
                f"{root} should hold {expected} together; {', '.join(missing)} is missing."
            )
    return class_folders.find_classes(root, scratch, split)


def _from_tables(tables: list[Path], scratch: Path) -> DatasetPictures:
    root = tables[0].parent
    listing = list_pictures(root, scratch)
    by_name = {picture.path.split("/")[-1]: picture for picture in listing.pictures}
    by_class: PicturesByClass = {}
    for table in tables:
        for _, (name, label) in read_table(table, ("filename", "label")):
            missing = StoredPicture(name, str(root / name), 0, error=f"in {table.name}, not found")
            by_class.setdefault(label, []).append(by_name.pop(name, missing))
    unlisted = tuple(picture.path for picture in by_name.values())
    return DatasetPictures(by_class, listing.other_files + unlisted)


def _from_caches(caches: list[Path], scratch: Path) -> DatasetPictures:
    by_class: PicturesByClass = {}
    for cache in caches:
        pixels, rows = _load_cache(cache)
        stored = store_raw(pixels, cache.name, scratch)
        for name in rows:
            by_class.setdefault(name, []).extend(stored[row] for row in rows[name])
    return DatasetPictures(by_class)


def _load_cache(path: Path) -> tuple[NDArray[np.uint8], dict[str, list[int]]]:
    """Read `image_data` (n, 84, 84, 3) uint8 and `class_dict`: class name -> row numbers."""
    document = load_pickled_dict(path)
    expected = "a dict of image_data (n, height, width, 3) uint8 and class_dict"
    pixels, classes = document.get("image_data"), document.get("class_dict")
    if not isinstance(pixels, np.ndarray) or not isinstance(classes, Mapping):
        found = on_one_line(", ".join(sorted(document)))
        raise DataError(f"{path} should hold {expected}; it has {found}.")
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[-1] != 3:
        raise DataError(
            f"{path} should hold {expected}; image_data is {pixels.dtype} {pixels.shape}."
        )
    rows = {
        as_text(name, path): value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in classes.items()
    }
    for name, numbers in rows.items():
        if not isinstance(numbers, list | tuple) or not all(
            isinstance(row, int) for row in numbers
        ):
            raise DataError(f"{path}: class {name} should be a list of row numbers.")
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(pixels):
            raise DataError(f"{path}: class {name} has rows beyond its {len(pixels)} pictures.")
    return pixels, rows
