"""The pictures in a folder, a zip or a tar archive, as they are stored; nothing is unpacked."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import shutil
import tarfile
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from protorect._utils.text import printable
from protorect.errors import DataError
from protorect.images.stored import StoredPicture, is_picture

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_DISK_IS_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@dataclass(frozen=True)
class Listing:
    """What lies under a root.

    Parameters
    ----------
    pictures
        Everything called like a picture, sorted by path.
    others
        Other files, by path; they are reported, never read.
    folders
        Folders by path, so that an empty class is seen.
    """

    pictures: tuple[StoredPicture, ...]
    others: tuple[str, ...]
    folders: tuple[str, ...]


def list_pictures(root: Path, scratch: Path) -> Listing:
    """List a folder or an archive; a compressed tar is first uncompressed into `scratch`.

    The outermost folder of an archive is left out of the paths where there is only one.
    """
    try:
        if root.is_dir():
            return _sorted(_folder(root), strip=False)
        if not root.exists():
            raise DataError(f"there is no file or folder {printable(str(root))}.")
        if zipfile.is_zipfile(root):
            return _sorted(_zip(root), strip=True)
        return _sorted(_tar(uncompressed(root, scratch)), strip=True)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise _not_an_archive(root) from error
    except OSError as error:
        if error.errno in _DISK_IS_FULL:  # it was the copy in scratch that failed
            raise
        reason = error.strerror or error
        raise DataError(f"cannot read {printable(str(root))}: {reason}.") from error


def uncompressed(archive: Path, scratch: Path) -> Path:
    """A tar that can be read at any place: itself, or an uncompressed copy in `scratch`."""
    if _is_plain_tar(archive):
        return archive
    plain = scratch / f"{uuid.uuid4().hex}.tar"
    for opener in (gzip.open, bz2.open, lzma.open):
        try:
            with opener(archive, "rb") as packed, plain.open("wb") as file:
                shutil.copyfileobj(packed, file, 2**20)
            return plain
        except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error):
            continue
        except OSError as error:
            if error.errno is not None:  # without a number it means: not this compression
                raise
    raise _not_an_archive(archive)


def _is_plain_tar(path: Path) -> bool:
    try:
        with tarfile.open(path, "r:"):
            return True
    except tarfile.TarError:
        return False


def _not_an_archive(path: Path) -> DataError:
    return DataError(
        f"{printable(str(path))} is not a folder and not a whole archive ({', '.join(_ARCHIVES)})."
    )


def _sorted(found: Iterator[StoredPicture | str], strip: bool) -> Listing:
    """Folders come as text with a slash in the end, other files as text without."""
    pictures, names = [], []
    for one in found:
        if isinstance(one, StoredPicture):
            pictures.append(one)
        else:
            names.append(one)
    if strip:
        pictures, names = _without_outermost(pictures, names)
    pictures.sort(key=lambda picture: picture.path)
    folders = {name.rstrip("/") for name in names if name.endswith("/")} - {""}
    others = [name for name in names if not name.endswith("/")]
    return Listing(tuple(pictures), tuple(sorted(others)), tuple(sorted(folders)))


def _without_outermost(
    pictures: list[StoredPicture], names: list[str]
) -> tuple[list[StoredPicture], list[str]]:
    outermost = {picture.path.split("/")[0] for picture in pictures}
    nested = any(len(picture.folders) > 1 for picture in pictures)
    if len(outermost) != 1 or not nested:
        return pictures, names
    prefix = f"{outermost.pop()}/"
    shorter = [replace(p, path=p.path.removeprefix(prefix)) for p in pictures]
    return shorter, [name.removeprefix(prefix) for name in names]


def _folder(root: Path) -> Iterator[StoredPicture | str]:
    """Walk a folder; links are followed, except back into a folder that is being walked."""
    stat = root.stat()
    stack = [(os.fspath(root), "", frozenset({(stat.st_dev, stat.st_ino)}))]
    while stack:
        folder, relative, above = stack.pop()
        try:
            opened = os.scandir(folder)
        except OSError as error:
            if not relative:
                raise
            reason = f"a folder that cannot be read ({error.strerror})"
            yield StoredPicture(relative.rstrip("/"), folder, 0, problem=reason)
            continue
        with opened as entries:
            for entry in entries:
                path = relative + printable(entry.name)
                try:
                    stat_ = entry.stat()
                except OSError as error:  # a link to nothing, or to itself
                    reason = f"a broken link ({error.strerror})"
                    yield StoredPicture(path, entry.path, 0, problem=reason)
                    continue
                identity = (stat_.st_dev, stat_.st_ino)
                if not entry.is_dir():
                    yield _file(path, entry, stat_)
                elif identity in above:
                    reason = "a link back to a folder it is in"
                    yield StoredPicture(path, entry.path, 0, problem=reason)
                else:
                    yield f"{path}/"
                    stack.append((entry.path, f"{path}/", above | {identity}))


def _file(path: str, entry: os.DirEntry[str], stat: os.stat_result) -> StoredPicture | str:
    if not is_picture(path):
        return path
    if not entry.is_file():  # reading a pipe would wait for ever
        return StoredPicture(path, entry.path, 0, problem="not a regular file")
    return StoredPicture(path, entry.path, stat.st_size)


def _zip(archive: Path) -> Iterator[StoredPicture | str]:
    with zipfile.ZipFile(archive) as members:
        for member in members.infolist():
            path = member.filename.lstrip("/")
            if member.is_dir() or not is_picture(path):
                yield path
                continue
            problem = ""
            if member.flag_bits & 1:
                problem = "encrypted"
            elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                problem = "compressed in a way that is not read here"
            deflated = member.compress_type == zipfile.ZIP_DEFLATED
            yield StoredPicture(
                path,
                str(archive),
                member.compress_size,
                offset=member.header_offset,
                unpacked_length=member.file_size if deflated else 0,
                zipped=True,
                problem=problem,
            )


def _tar(archive: Path) -> Iterator[StoredPicture | str]:
    with tarfile.open(archive, "r:") as members:
        for member in members:
            path = printable(member.name).removeprefix("./").lstrip("/")
            if member.isdir():
                yield f"{path}/"
            elif not is_picture(path):
                yield path
            else:
                plain = member.isreg() and not member.issparse()
                problem = "" if plain else "a link or a sparse file inside an archive"
                yield StoredPicture(
                    path, str(archive), member.size, offset=member.offset_data, problem=problem
                )
