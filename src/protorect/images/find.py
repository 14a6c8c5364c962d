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
from protorect.images.formats import LISTS, kind_of_file
from protorect.images.stored import PathLike, StoredPicture

PictureSource = PathLike | Iterable[PathLike]


class FailedPicture(NamedTuple):
    """A picture that could not be read or moved, and the reason in a few words."""

    path: str
    reason: str


class SkippedFile(NamedTuple):
    """A file that is not read, and its kind in the plural, such as "videos"."""

    path: str
    kind: str

    def as_failed(self) -> FailedPicture:
        """The same for a list of files that were not used."""
        return FailedPicture(self.path, f"skipped: {self.kind} are not read")


@dataclass(frozen=True)
class FoundPictures:
    """Pictures without duplicates; each `file` is an absolute path."""

    pictures: tuple[StoredPicture, ...]
    skipped: tuple[SkippedFile, ...] = ()  # files beside them that are not pictures

    def without(self, folder: Path | None = None, files: Iterable[str] = ()) -> Self:
        """Return what is neither in `folder` nor among `files`."""
        excluded = {os.path.realpath(file) for file in files}
        prefix = None if folder is None else os.path.realpath(folder) + os.sep

        def remains(file: str) -> bool:
            real = _real_path(file)
            return real not in excluded and not (prefix and real.startswith(prefix))

        return replace(
            self,
            pictures=tuple(picture for picture in self.pictures if remains(picture.file)),
            skipped=tuple(file for file in self.skipped if remains(file.path)),
        )


def find_pictures(source: PictureSource) -> FoundPictures:
    """List pictures without reading them.

    `source` is a folder with pictures at any depth, a pattern such as `photos/**/*.jpg`, a picture,
    a text file with one picture per line, or several of those.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else source
    pictures: dict[str, StoredPicture] = {}
    skipped: dict[str, SkippedFile] = {}
    for one in sources:
        found = _find(os.fspath(one))
        pictures = {picture.file: picture for picture in found.pictures} | pictures
        skipped |= {file.path: file for file in found.skipped}
    return FoundPictures(tuple(pictures.values()), tuple(skipped.values()))


def _find(source: str) -> FoundPictures:
    if os.path.isdir(source):
        folder = Path(os.path.abspath(source))
        listing = list_pictures(folder, scratch=folder)  # scratch is for archives only
        return FoundPictures(listing.pictures, _skipped(folder / p for p in listing.other_files))
    if os.path.lexists(source):
        picture = StoredPicture.from_file(source)
        if _is_picture(picture):
            return FoundPictures((picture,))
        if (kind := kind_of_file(source)) not in LISTS:
            raise DataError(f"{printable(source)} cannot be sorted: {kind} are not read.")
        return _find_listed(source)
    if glob.has_magic(source):
        return _find_matching(source)
    raise DataError(
        f"there is no file or folder {printable(source)}; give a folder, a pattern in quotes, or a "
        "text file with one picture per line."
    )


def _find_matching(pattern: str) -> FoundPictures:
    names = sorted(glob.glob(pattern, recursive=True))
    files = [StoredPicture.from_file(name) for name in names if not os.path.isdir(name)]
    pictures = tuple(file for file in files if _is_picture(file))
    if not pictures:
        raise DataError(f"no picture matches {printable(pattern)}.")
    return FoundPictures(pictures, _skipped(f.file for f in files if not _is_picture(f)))


def _is_picture(file: StoredPicture) -> bool:
    """Whether it is a picture, even in a hidden folder: the user named it."""
    return replace(file, path=os.path.basename(file.path)).is_picture


def _skipped(paths: Iterable[PathLike]) -> tuple[SkippedFile, ...]:
    return tuple(SkippedFile(os.fspath(path), kind_of_file(os.fspath(path))) for path in paths)


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
