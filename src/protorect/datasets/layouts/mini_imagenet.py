"""miniImageNet in the forms in which it is distributed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protorect._utils.tables import read_table
from protorect._utils.text import on_one_line
from protorect.datasets.index import IndexLine
from protorect.datasets.layouts import DatasetPictures, PicturesByClass, class_folders
from protorect.datasets.pickles import as_text, load_pickled_dict, store_raw
from protorect.datasets.splits import SPLITS, ClassSplit, known_split
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.stored import StoredPicture

PER_CLASS = 600
SIDE = 84
_REMEDY = "Get the zips again, or extract them and give the folder of class folders."


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find Ravi's tables beside the pictures, three cache pickles, three zips, or class folders."""
    tables = [root / f"{name}.csv" for name in SPLITS]
    caches = [root / f"mini-imagenet-cache-{name}.pkl" for name in SPLITS]
    zips = [root / f"{name}.zip" for name in SPLITS]
    from_zips = partial(_from_zips, split)
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


def _from_zips(split: ClassSplit | None, zips: list[Path], scratch: Path) -> DatasetPictures:
    """Find the pictures of the zips, which have to be whole: nothing may be missing or twice."""
    by_class: PicturesByClass = {}
    unused: list[str] = []
    for path in zips:
        found = class_folders.find_classes(path, scratch, split)
        unused += [f"{path.name}/{name}" for name in found.unused]
        for name, pictures in found.by_class.items():
            _check_zip(name, path)
            _check_names(name, [picture.path.split("/")[-1] for picture in pictures], path)
            by_class[name] = [replace(one, path=f"{path.name}/{one.path}") for one in pictures]
    remarks = _check_counts(by_class, zips[0].parent)
    return DatasetPictures(
        by_class, tuple(unused), remarks=remarks, check=partial(_check_picture, {})
    )


def _check_zip(name: str, path: Path) -> None:
    """Raise DataError if the class is not in the zip of its published split."""
    published = known_split("mini-imagenet")
    own = [one for one in SPLITS if published is not None and name in published[one]]
    if own and own != [path.stem]:
        raise DataError(
            f"{path}: class {name} belongs to {own[0]}.zip; in few-shot learning a class belongs "
            f"to one split only. {_REMEDY}"
        )


def _check_names(class_name: str, names: list[str], path: Path) -> None:
    """Raise DataError if a picture of the class is named after no class, or is there twice."""
    seen: set[str] = set()
    for name in names:
        if not name.startswith(class_name):
            raise DataError(
                f"{path}: {class_name}/{name} should have a name that begins with its class, as "
                f"{class_name}00000005.jpg. {_REMEDY}"
            )
        if name in seen:
            raise DataError(f"{path}: {class_name}/{name} is in it twice. {_REMEDY}")
        seen.add(name)


def _check_counts(by_class: PicturesByClass, root: Path) -> tuple[str, ...]:
    """Raise DataError if classes differ in their number of pictures; remark on other than 600."""
    counts = {name: len(pictures) for name, pictures in by_class.items()}
    if not counts:
        return ()
    [(expected, _)] = Counter(counts.values()).most_common(1)
    others = [name for name, count in counts.items() if count != expected]
    if others:
        more = f" ({len(others) - 1} more classes differ)" if others[1:] else ""
        raise DataError(
            f"{root}: the number of pictures of class {others[0]} is {counts[others[0]]}, that of "
            f"the others {expected}{more}; miniImageNet has {PER_CLASS} of each class. {_REMEDY}"
        )
    if expected == PER_CLASS:
        return ()
    return (f"every class has {expected} pictures; miniImageNet has {PER_CLASS} of each class.",)


def _check_picture(paths: dict[str, str], line: IndexLine) -> str:
    """Raise DataError if a picture has another size; remark on one that is there twice.

    `paths` are those of the pictures packed so far, by SHA-256 of their contents.
    """
    if line.problem:
        return ""
    if (line.width, line.height) != (SIDE, SIDE):
        raise DataError(
            f"{line.path} has {line.width} x {line.height} pixels; the pictures of these zips "
            f"have {SIDE} x {SIDE}. {_REMEDY}"
        )
    first = paths.setdefault(line.sha256, line.path)
    # ImageNet itself has a few pictures under two names.
    return "" if first == line.path else f"{line.path} is the same picture as {first}."
