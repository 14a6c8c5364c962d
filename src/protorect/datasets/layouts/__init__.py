"""Layouts of data sets on disk, one module per layout.

A layout is a function `find_classes(root, scratch, split) -> DatasetPictures`. It lists names and
reads no pictures. `scratch` is a folder for temporary files that last until all is packed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from protorect._utils.text import printable
from protorect.datasets.splits import ClassSplit
from protorect.images.stored import StoredPicture

PicturesByClass = dict[str, list[StoredPicture]]


@dataclass(frozen=True)
class DatasetPictures:
    """The pictures of a data set by class."""

    by_class: PicturesByClass  # a class whose folder has no picture has an empty list
    unused: tuple[str, ...] = ()  # paths of other files, and of pictures that belong to no class
    split: ClassSplit | None = None  # if the folders themselves define one


def describe_contents(root: Path) -> str:
    """Describe in a few words what is at `root`, for messages about a wrong layout."""
    if not root.is_dir():
        return f"the file {printable(root.name)}"
    names = sorted(printable(name) for name in os.listdir(root))
    folders = [name for name in names if (root / name).is_dir()]
    if not names:
        return "an empty folder"
    if not folders:
        return f"{len(names)} files and no folder ({first_names(names)})"
    return f"{len(folders)} folders ({first_names(folders)}) and {len(names) - len(folders)} files"


def first_names(names: list[str]) -> str:
    """Join the first three names, with dots if there are more."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
