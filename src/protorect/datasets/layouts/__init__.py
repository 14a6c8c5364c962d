"""Layouts of data sets on disk, one module per layout.

A layout is a function `find_classes(root, scratch, split) -> DatasetPictures`. It lists
pictures without decoding them. `scratch` is a folder for temporary files until all are packed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from protorect._utils.files import names_in
from protorect._utils.text import printable
from protorect.datasets.index import IndexLine
from protorect.datasets.splits import ClassSplit
from protorect.errors import DataError
from protorect.images.archives import Listing
from protorect.images.stored import StoredPicture

PicturesByClass = dict[str, list[StoredPicture]]
PictureCheck = Callable[[IndexLine], str]  # raises DataError, or returns a remark or ""


@dataclass(frozen=True)
class DatasetPictures:
    """The pictures of a data set by class."""

    by_class: PicturesByClass  # a class whose folder has no picture has an empty list
    unused: tuple[str, ...] = ()  # paths of other files, and of pictures that belong to no class
    split: ClassSplit | None = None  # if the folders themselves define one
    remarks: tuple[str, ...] = ()  # what the user should know, one sentence each
    texts: tuple[StoredPicture, ...] = ()  # lists beside the pictures, such as their boxes
    crop: str = ""  # "boxes", "none" or "before", see `datasets.boxes`; "" if there are no boxes
    check: PictureCheck = lambda _: ""  # called with every picture that was packed


def group_by_class(
    listing: Listing, classes: Iterable[str], class_of: Callable[[StoredPicture], str | None]
) -> DatasetPictures:
    """Group pictures by `class_of(picture)`; `classes` are those with a folder, empty or not."""
    by_class: PicturesByClass = {name: [] for name in classes}
    unused = list(listing.other_files)
    for picture in listing.pictures:
        name = class_of(picture)
        if picture.path in by_class:  # an unreadable folder is listed as a picture with an error
            raise DataError(f"{printable(picture.file)}: {picture.error}; make it readable.")
        if name is None:
            unused.append(picture.path)
        else:
            by_class.setdefault(name, []).append(picture)
    return DatasetPictures(by_class, tuple(unused))


def describe_contents(root: Path) -> str:
    """Describe in a few words what is at `root`, for messages about a wrong layout."""
    if not root.is_dir():
        return f"the file {printable(root.name)}"
    names = [printable(name) for name in names_in(root)]
    folders = [name for name in names if (root / name).is_dir()]
    if not names:
        return "an empty folder"
    if not folders:
        return f"{len(names)} files and no folder ({first_names(names)})"
    return f"{len(folders)} folders ({first_names(folders)}) and {len(names) - len(folders)} files"


def first_names(names: list[str]) -> str:
    """Join the first three names, with dots if there are more."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
