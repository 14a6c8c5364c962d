"""The pictures to be sorted, wherever they are named: a folder, a pattern, a list, single files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from protorect._utils.text import printable
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.stored import StoredPicture, is_picture

PathLike = str | os.PathLike[str]
PictureSource = PathLike | Iterable[PathLike]
LARGEST_LIST = 256 * 2**20


class Problem(NamedTuple):
    """A picture that cannot be used, and why in a few words."""

    path: str
    reason: str


@dataclass(frozen=True)
class Pile:
    """Pictures to be sorted.

    Parameters
    ----------
    pictures
        Each named once, by its absolute path.
    others
        How many other files lie among them; they are left alone.
    """

    pictures: tuple[StoredPicture, ...]
    others: int = 0

    def without(self, folder: Path | None = None, files: Iterable[str] = ()) -> Pile:
        """The same pile but for what lies in a folder, and but for some files."""
        left_out = {os.path.realpath(file) for file in files}
        below = None if folder is None else os.path.realpath(folder) + os.sep
        return Pile(
            tuple(
                picture
                for picture in self.pictures
                if (real := _real_place(picture.file)) not in left_out
                and not (below and real.startswith(below))
            ),
            self.others,
        )


def find_pictures(source: PictureSource) -> Pile:
    """List pictures without reading them.

    Parameters
    ----------
    source
        A folder with pictures at any depth, a pattern such as `photos/**/*.jpg`, a picture, a text
        file that names a picture on every line, or several of those.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    found: dict[str, StoredPicture] = {}
    others = 0
    for one in sources:
        pile = _found(os.fspath(one))
        others += pile.others
        for picture in pile.pictures:
            found.setdefault(picture.file, picture)
    return Pile(tuple(found.values()), others)


def _found(source: str) -> Pile:
    if os.path.isdir(source):
        return _in_folder(source)
    if os.path.lexists(source):
        return Pile((stored(source),)) if is_picture(_name(source)) else _in_list(source)
    if glob.has_magic(source):
        return _matching(source)
    raise DataError(
        f"there is no file or folder {printable(source)}; give a folder, a pattern in quotes, or a "
        "text file with a picture on every line."
    )


def _in_folder(folder: str) -> Pile:
    listing = list_pictures(Path(folder), scratch=Path(folder))  # scratch is for archives only
    absolute = os.path.abspath(folder)
    pictures = tuple(
        StoredPicture(
            path=picture.path,
            file=os.path.join(absolute, os.path.relpath(picture.file, folder)),
            length=picture.length,
            problem=picture.problem,
        )
        for picture in listing.pictures
    )
    return Pile(pictures, len(listing.others))


def _matching(pattern: str) -> Pile:
    names = sorted(glob.glob(pattern, recursive=True))
    pictures = tuple(stored(name) for name in names if is_picture(_name(name)))
    if not pictures:
        raise DataError(f"no picture matches {printable(pattern)}.")
    return Pile(pictures, sum(os.path.isfile(name) for name in names) - len(pictures))


def _in_list(file: str) -> Pile:
    """A picture on every line; relative names start at the folder of the list."""
    folder = os.path.dirname(os.path.abspath(file))
    lines = [line for line in read_text(file).splitlines() if line.strip()]
    return Pile(tuple(stored(os.path.join(folder, line.strip()), line.strip()) for line in lines))


def read_text(file: str) -> str:
    """A text file a person wrote, with or without a byte-order mark."""
    try:
        if not os.path.isfile(file):
            raise DataError(f"{printable(file)} is not an ordinary file.")
        if os.path.getsize(file) > LARGEST_LIST:
            raise DataError(f"{printable(file)} has more than {LARGEST_LIST // 2**20} MiB.")
        return Path(file).read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise DataError(f"cannot read {printable(file)}: {error.strerror or error}.") from error


def stored(file: PathLike, name: str | None = None) -> StoredPicture:
    """One picture in a file of its own; whatever is wrong with it is its `problem`."""
    absolute = os.path.abspath(file)
    shown = printable(os.fspath(file) if name is None else name)
    try:
        status = os.stat(absolute)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in a name
        reason = getattr(error, "strerror", None) or str(error)
        return StoredPicture(shown, absolute, 0, problem=reason)
    problem = "" if os.path.isfile(absolute) else "not a regular file"
    return StoredPicture(shown, absolute, status.st_size, problem=problem)


def _name(path: str) -> str:
    return os.path.basename(path)


def _real_place(file: str) -> str:
    """Where an entry lies, links of its folders followed, but not itself if it is one."""
    folder, name = os.path.split(file)
    return os.path.join(os.path.realpath(folder), name)
