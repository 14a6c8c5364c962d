"""Class folders anywhere below the root, named as in the class split."""

import re
from pathlib import Path

from protorect.datasets.layouts import DatasetPictures, group_by_class
from protorect.datasets.splits import ClassSplit
from protorect.errors import OptionError
from protorect.images.archives import Listing, list_pictures
from protorect.images.stored import StoredPicture

_NUMBERED = re.compile(r"(\d+)\.")


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find the pictures whose folder has the name of a class of the split."""
    return group(list_pictures(root, scratch), split)


def group(
    listing: Listing, split: ClassSplit | None, parents: tuple[str, ...] = ()
) -> DatasetPictures:
    """Group the pictures whose folder has the name of a class of the split.

    A slash in a name, as in `F-16A/B`, may be `_` or `-` on disk, and a numbered class, as
    `00.Speed limit (20km/h)`, may be just its number. If `parents` are given, only class folders
    inside folders of these names count; "" is the root.
    """
    if split is None:
        raise OptionError(
            "there is no published split of this data set, and its class folders are found by the "
            "names in a split; give --split FILE.json, or use `protorect prepare folder`."
        )
    spellings = _spellings(split)

    def class_of(picture: StoredPicture) -> str | None:
        if not picture.folders:
            return None
        *_, parent, folder = ("", *picture.folders)
        return None if parents and parent not in parents else spellings.get(_plain(folder))

    names = [_plain(folder.split("/")[-1]) for folder in listing.folders]
    classes = [spellings[name] for name in names if name in spellings]
    return group_by_class(listing, classes, class_of)


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
    """Return the name in lower case with `_` for every separator, for comparison."""
    return re.sub(r"[\s/_-]", "_", name).casefold()
