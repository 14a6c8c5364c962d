"""What a layout finds."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from protorect._utils.text import printable
from protorect.datasets.splits import ClassSplit
from protorect.images.stored import StoredPicture

Pictures = dict[str, list[StoredPicture]]


@dataclass(frozen=True)
class Found:
    """The pictures of every class, by class name.

    Parameters
    ----------
    pictures
        A class whose folder holds no picture has an empty list.
    left_out
        Files that are not pictures, and pictures that belong to no class; to be reported.
    split
        Where the folders themselves say which classes are for what.
    """

    pictures: Pictures
    left_out: tuple[str, ...] = field(default=())
    split: ClassSplit | None = None


def describe(root: Path) -> str:
    """What is at a root, in a few words, for a person who expected something else."""
    if not root.is_dir():
        return f"the file {printable(root.name)}"
    names = sorted(printable(name) for name in os.listdir(root))
    folders = [name for name in names if (root / name).is_dir()]
    if not names:
        return "an empty folder"
    if not folders:
        return f"{len(names)} files and no folder ({_some(names)})"
    return f"{len(folders)} folders ({_some(folders)}) and {len(names) - len(folders)} files"


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
