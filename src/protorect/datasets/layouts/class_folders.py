"""A benchmark as class folders, wherever under the root they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from protorect.datasets.layouts.found import Found, Pictures
from protorect.datasets.splits import ClassSplit
from protorect.errors import OptionError
from protorect.images.archives import Listing, list_pictures
from protorect.images.stored import StoredPicture

_NUMBERED = re.compile(r"(\d+)\.")


def find_class_folders(root: Path, scratch: Path, split: ClassSplit | None) -> Found:
    """Pictures whose folder has the name of a class of the split.

    A name with a slash, as `F-16A/B`, may be written with `_` or `-` in its place, and a numbered
    class, as `00.Speed limit (20km/h)`, may be just its number.
    """
    if split is None:
        raise OptionError("this data set has no split of its own here; give --split FILE.json.")
    return by_name(list_pictures(root, scratch), split, lambda picture: picture.folders[-1])


def by_name(
    listing: Listing, split: ClassSplit, name_of: Callable[[StoredPicture], str | None]
) -> Found:
    """Sort pictures into the classes of a split by the name `name_of` gives them."""
    spellings = _spellings(split)
    pictures: Pictures = {
        spellings[_plain(folder.split("/")[-1])]: []
        for folder in listing.folders
        if _plain(folder.split("/")[-1]) in spellings
    }
    left_out = list(listing.other_files)
    for picture in listing.pictures:
        name = name_of(picture) if picture.folders else None
        known = None if name is None else spellings.get(_plain(name))
        if known is None:
            left_out.append(picture.path)
        else:
            pictures.setdefault(known, []).append(picture)
    return Found(pictures, tuple(left_out))


def _spellings(split: ClassSplit) -> dict[str, str]:
    """Class names by every way in which their folder may be written."""
    spellings = {_plain(name): name for name in split.names}
    for name in split.names:
        numbered = _NUMBERED.match(name)
        if numbered:
            for digits in range(1, 6):
                spellings.setdefault(f"{int(numbered[1]):0{digits}d}", name)
    return spellings


def _plain(name: str) -> str:
    return re.sub(r"[\s/_-]", "_", name).casefold()
