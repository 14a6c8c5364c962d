"""Links or copies of pictures in an exported folder."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from protorect._utils.files import file_errors
from protorect._utils.text import numbered
from protorect.labeling.exports import Labeled


def place_pictures(pictures: Iterable[tuple[Labeled, str]], root: Path, copy: bool) -> list[str]:
    """Link or copy each picture into a folder below `root`; their paths relative to it.

    Where a name is taken, also in other case, a number is added. Where the system makes no links,
    copies are made.
    """
    taken: set[str] = set()
    placed = []
    for row, folder in pictures:
        own_name = os.path.basename(row.path)
        number, name = 1, f"{folder}/{own_name}"
        while name.casefold() in taken:
            number += 1
            name = f"{folder}/{numbered(own_name, number)}"
        taken.add(name.casefold())
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with file_errors("copy" if copy else "link", row.path):
            _place(os.path.realpath(row.path), target, copy)
        placed.append(name)
    return placed


def _place(source: str, target: Path, copy: bool) -> None:
    os.stat(source)  # a link would also be made to a file that is gone
    if not copy:
        try:
            os.symlink(source, target)
            return
        except OSError:
            if os.path.lexists(target):
                raise
    shutil.copyfile(source, target)
