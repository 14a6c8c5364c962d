"""Find pictures that a user names: a folder, a pattern, a list, single files."""

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

from protorect._utils.files import read_text
from protorect._utils.text import printable
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.stored import PathLike, StoredPicture, is_picture

PictureSource = PathLike | Iterable[PathLike]


class FailedPicture(NamedTuple):
    """A picture that could not be read or moved, and the reason in a few words."""

    path: str
    reason: str


@dataclass(frozen=True)
class FoundPictures:
    """Pictures without duplicates; each `file` is an absolute path."""

    pictures: tuple[StoredPicture, ...]
    other_files: int = 0  # number of files beside them that are not pictures

    def without(self, folder: Path | None = None, files: Iterable[str] = ()) -> Self:
        """Return the pictures that are neither in `folder` nor among `files`."""
        excluded = {os.path.realpath(file) for file in files}
        prefix = None if folder is None else os.path.realpath(folder) + os.sep
        remaining = (
            picture
            for picture in self.pictures
            if (real := _real_path(picture.file)) not in excluded
            and not (prefix and real.startswith(prefix))
        )
        return replace(self, pictures=tuple(remaining))


def find_pictures(source: PictureSource) -> FoundPictures:
    """List pictures without reading them.

    `source` is a folder with pictures at any depth, a pattern such as `photos/**/*.jpg`, a picture,
    a text file with one picture per line, or several of those.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else source
    pictures: dict[str, StoredPicture] = {}
    other_files = 0
    for one in sources:
        found = _find(os.fspath(one))
        other_files += found.other_files
        for picture in found.pictures:
            pictures.setdefault(picture.file, picture)
    return FoundPictures(tuple(pictures.values()), other_files)


def _find(source: str) -> FoundPictures:
    if os.path.isdir(source):
        folder = Path(os.path.abspath(source))
        listing = list_pictures(folder, scratch=folder)  # scratch is for archives only
        return FoundPictures(listing.pictures, len(listing.other_files))
    if os.path.lexists(source):
        if is_picture(os.path.basename(source)):
            return FoundPictures((StoredPicture.from_file(source),))
        return _find_listed(source)
    if glob.has_magic(source):
        return _find_matching(source)
    raise DataError(
        f"there is no file or folder {printable(source)}; give a folder, a pattern in quotes, or a "
        "text file with one picture per line."
    )


def _find_matching(pattern: str) -> FoundPictures:
    names = sorted(glob.glob(pattern, recursive=True))
    pictures = tuple(
        StoredPicture.from_file(name) for name in names if is_picture(os.path.basename(name))
    )
    if not pictures:
        raise DataError(f"no picture matches {printable(pattern)}.")
    return FoundPictures(pictures, sum(os.path.isfile(name) for name in names) - len(pictures))


def _find_listed(file: str) -> FoundPictures:
    """Read a list with one picture per line; paths are relative to the folder of the list."""
    folder = os.path.dirname(os.path.abspath(file))
    text = read_text(file, errors="surrogateescape")  # file names need not be UTF-8
    names = [line.strip() for line in text.splitlines() if line.strip()]
    return FoundPictures(
        tuple(StoredPicture.from_file(os.path.join(folder, name), name) for name in names)
    )


def _real_path(file: str) -> str:
    """Resolve the links among the folders of a file, but not the file itself."""
    folder, name = os.path.split(file)
    return os.path.join(os.path.realpath(folder), name)
