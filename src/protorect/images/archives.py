"""List the pictures in a folder, a zip or a tar archive without extracting them."""

import bz2
import errno
import gzip
import lzma
import os
import tarfile
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from protorect._utils.text import printable
from protorect.errors import DataError
from protorect.images.stored import StoredPicture

_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_DISK_IS_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_TEXT = ".txt"
_LARGE, _MOST_COMPRESSED = 2**30, 100  # bytes, and times the compressed size, that are unpacked
_Entry = StoredPicture | str  # a picture or text, or the path of a file or a folder (with a last /)


@dataclass(frozen=True)
class Listing:
    """The contents of a folder or an archive, sorted by path."""

    pictures: tuple[StoredPicture, ...]  # files that are called or begin like a picture
    other_files: tuple[str, ...]  # paths; of these files only texts may be read
    folders: tuple[str, ...]  # paths, those of empty folders included
    texts: tuple[StoredPicture, ...] = ()  # files that end in .txt, such as lists of the pictures


def list_pictures(root: Path, scratch: Path) -> Listing:
    """List a folder or an archive; a compressed tar is first uncompressed into `scratch`.

    If all pictures of an archive are in one outermost folder, paths are relative to that folder.
    """
    try:
        if root.is_dir():
            return _listing(_list_folder(root), strip=False)
        if not root.exists():
            raise DataError(f"there is no file or folder {printable(root)}.")
        zipped = zipfile.is_zipfile(root)
        members = _list_zip(root) if zipped else _list_tar(uncompressed(root, scratch))
        listing = _listing(members, strip=True)
        for one, other in pairwise(picture.path for picture in listing.pictures):
            if one == other:  # which no folder can hold
                raise DataError(f"{printable(root)} holds {one} twice; pack it again without one.")
        return listing
    except DataError:
        raise
    except OSError as error:
        if error.errno in _DISK_IS_FULL:  # it was the copy in scratch that failed
            raise
        raise DataError(f"cannot read {printable(root)}: {error.strerror or error}.") from error
    except Exception as error:  # tarfile and zipfile raise many kinds of error on damaged files
        raise _not_an_archive(root) from error


def uncompressed(archive: Path, scratch: Path) -> Path:
    """Return a tar that can be read at any position: `archive`, or a copy in `scratch`."""
    try:
        tarfile.open(archive, "r:").close()
        return archive
    except tarfile.TarError:
        plain = scratch / f"{uuid.uuid4().hex}.tar"
    for opener in (gzip.open, bz2.open, lzma.open):
        try:
            with opener(archive, "rb") as packed, plain.open("wb") as file:
                while data := packed.read(2**20):
                    file.write(data)
                    if file.tell() > max(_LARGE, _MOST_COMPRESSED * archive.stat().st_size):
                        raise DataError(
                            f"{printable(archive)} unpacks to more than {_MOST_COMPRESSED} times "
                            "its size, as no archive of pictures does. Unpack it yourself if you "
                            "trust it, and give the folder."
                        )
            return plain
        except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error):
            continue
        except OSError as error:
            if error.errno is not None:  # without a number it means: not this compression
                raise
    raise _not_an_archive(archive)


def _not_an_archive(path: Path) -> DataError:
    return DataError(
        f"{printable(path)} is not a folder and not a whole archive ({', '.join(_SUFFIXES)})."
    )


def _listing(entries: Iterable[_Entry], strip: bool) -> Listing:
    """Sort the entries; `strip` removes an outermost folder that all pictures are in."""
    entries = list(entries)
    files = [entry for entry in entries if isinstance(entry, StoredPicture)]
    pictures = [file for file in files if not file.path.endswith(_TEXT)]
    texts = [file for file in files if file.path.endswith(_TEXT)]
    names = [entry for entry in entries if isinstance(entry, str)]
    outermost = {picture.path.split("/")[0] for picture in pictures}
    if strip and len(outermost) == 1 and any(len(picture.folders) > 1 for picture in pictures):
        prefix = f"{outermost.pop()}/"
        pictures, texts = (
            [replace(one, path=one.path.removeprefix(prefix)) for one in files]
            for files in (pictures, texts)
        )
        names = [name.removeprefix(prefix) for name in names]
    others = [*(name for name in names if not name.endswith("/")), *(one.path for one in texts)]
    return Listing(
        tuple(sorted(pictures, key=lambda picture: picture.path)),
        tuple(sorted(others)),
        tuple(sorted({name.rstrip("/") for name in names if name.endswith("/")} - {""})),
        tuple(texts),
    )


def _entry(file: StoredPicture) -> _Entry:
    """A file that may be read, which is a picture or a text, or the path of another one."""
    return file if file.path.endswith(_TEXT) or file.is_picture else file.path


def _list_folder(root: Path) -> Iterator[_Entry]:
    """List a folder at any depth; links are followed unless they lead back to a parent folder."""
    status = root.stat()
    stack = [(os.fspath(root), "", frozenset({(status.st_dev, status.st_ino)}))]
    while stack:
        folder, relative, parents = stack.pop()
        try:
            children = list(os.scandir(folder))
        except OSError as error:
            if not relative:
                raise
            reason = f"a folder that cannot be read ({error.strerror})"
            yield StoredPicture(relative.rstrip("/"), folder, 0, error=reason)
            continue
        for child in children:
            path = relative + printable(child.name)
            try:
                status = child.stat()
            except OSError as error:  # a link to nothing, or to itself
                reason = f"a broken link ({error.strerror})"
                yield StoredPicture(path, child.path, 0, error=reason)
                continue
            identity = (status.st_dev, status.st_ino)
            if child.is_dir() and identity in parents:
                yield StoredPicture(path, child.path, 0, error="a link back to a folder it is in")
            elif child.is_dir():
                yield f"{path}/"
                stack.append((child.path, f"{path}/", parents | {identity}))
            else:
                yield _entry(StoredPicture.from_status(path, child.path, status))


def _list_zip(archive: Path) -> Iterator[_Entry]:
    with zipfile.ZipFile(archive) as members:
        for member in members.infolist():
            path = printable(member.filename).lstrip("/")
            if path.endswith("/"):
                yield path
                continue
            reason = ""
            if member.flag_bits & 1:
                reason = "encrypted"
            elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                reason = "compressed in a way that is not read here"
            deflated = member.compress_type == zipfile.ZIP_DEFLATED
            picture = StoredPicture(
                path,
                str(archive),
                member.compress_size,
                offset=member.header_offset,
                unpacked_length=member.file_size if deflated else 0,
                zipped=True,
                checksum=member.CRC,
                error=reason,
            )
            yield _entry(picture)


def _list_tar(archive: Path) -> Iterator[_Entry]:
    with tarfile.open(archive, "r:") as members:
        for member in members:
            path = printable(member.name).removeprefix("./").lstrip("/")
            if member.isdir():
                yield f"{path}/"
            else:
                regular = member.isreg() and not member.issparse()
                reason = "" if regular else "a link or a sparse file inside an archive"
                position = member.offset_data
                picture = StoredPicture(path, str(archive), member.size, position, error=reason)
                yield _entry(picture)
