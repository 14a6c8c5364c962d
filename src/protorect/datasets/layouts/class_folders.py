"""Class folders anywhere below the root, named as in the class split."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from protorect.datasets.layouts import DatasetPictures, PicturesByClass
from protorect.datasets.splits import ClassSplit
from protorect.errors import OptionError
from protorect.images.archives import Listing, list_pictures
from protorect.images.stored import StoredPicture

_NUMBERED = re.compile(r"(\d+)\.")


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find the pictures whose folder has the name of a class of the split.

    A slash in a name, as in `F-16A/B`, may be `_` or `-` on disk, and a numbered class, as
    `00.Speed limit (20km/h)`, may be just its number.
    """
    return group_by_class(list_pictures(root, scratch), split, lambda one: one.folders[-1])


def group_by_class(
    listing: Listing,
    split: ClassSplit | None,
    folder_of: Callable[[StoredPicture], str | None],
) -> DatasetPictures:
    """Group pictures by the class of the split whose folder `folder_of(picture)` is."""
    if split is None:
        raise OptionError("this data set has no split of its own here; give --split FILE.json.")
    spellings = _spellings(split)
    names = [_plain(folder.split("/")[-1]) for folder in listing.folders]
    by_class: PicturesByClass = {spellings[name]: [] for name in names if name in spellings}
    unused = list(listing.other_files)
    for picture in listing.pictures:
        folder = folder_of(picture) if picture.folders else None
        class_name = None if folder is None else spellings.get(_plain(folder))
        if class_name is None:
            unused.append(picture.path)
        else:
            by_class.setdefault(class_name, []).append(picture)
    return DatasetPictures(by_class, tuple(unused))


def _spellings(split: ClassSplit) -> dict[str, str]:
    """Map every accepted folder name to its class name."""
    spellings = {_plain(name): name for name in split.names}
    for name in split.names:
        numbered = _NUMBERED.match(name)
        if numbered:
            for digits in range(1, 6):
                spellings.setdefault(f"{int(numbered[1]):0{digits}d}", name)
    return spellings


def _plain(name: str) -> str:
    return re.sub(r"[\s/_-]", "_", name).casefold()
