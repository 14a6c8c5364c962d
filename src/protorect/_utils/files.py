"""Files: read if they are regular and not too large; written completely or not at all."""

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from protorect._utils.locks import locked
from protorect._utils.text import LONGEST_NAME, printable
from protorect.errors import DataError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

LARGEST_TEXT = 256 * 2**20  # bytes of a text file, which is read at once
_LONGEST_SUFFIX = 32  # characters, of a temporary file
_PREFIX = ".protorect-new-"
_TEMPORARY = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}(\..*)?", re.DOTALL)


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file for reading; DataError for any other, without waiting for a pipe."""
    with read_errors(path), open(path, "rb", opener=_open_nonblocking) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is not a regular file")
        yield file


def read_bytes(path: str | os.PathLike[str], largest: int = LARGEST_TEXT) -> bytes:
    """Read a file; DataError if it is longer than `largest`."""
    with open_file(path) as file:
        length = os.fstat(file.fileno()).st_size
        if length > largest:
            raise OSError(f"{length:,} bytes are too many")
        return file.read(largest)


def read_text(path: str | os.PathLike[str], errors: str = "strict") -> str:
    """Read text in UTF-8, with or without a byte-order mark."""
    try:
        return read_bytes(path).decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        place = f"byte {error.start}"
        raise DataError(f"cannot read {printable(path)}: {place} is not UTF-8.") from error


def user_folder(variable: str, default: str) -> Path:
    """The folder that a variable names, or the default below the home folder; one on Windows."""
    if sys.platform == "win32":
        variable, default = "LOCALAPPDATA", "AppData/Local"
    return Path(os.environ.get(variable) or Path.home() / default) / "protorect"


def names_in(folder: str | os.PathLike[str]) -> list[str]:
    """The sorted names of what is in a folder; none if there is no such folder."""
    with read_errors(folder):
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to, which is renamed to `path` if the block succeeds.

    A link is followed, the permissions of a replaced file are kept, and a pipe or a device is
    written into. The temporary name keeps the suffix of `path`, for writers that look at it.
    """
    target = Path(path).resolve()
    with write_errors(path):
        _check_target(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        regular = target.is_file() or not target.exists()
        folder = target.parent if regular else None  # None: the system's temporary folder
        with _temporary(folder, target.suffix) as temporary:
            yield temporary
            if not regular:
                with temporary.open("rb") as written, target.open("wb") as sink:
                    shutil.copyfileobj(written, sink)
            else:
                mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
                os.chmod(temporary, mode)
                os.replace(temporary, target)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a new folder beside `path` to fill, which is renamed to `path` if the block succeeds.

    It is removed if the block fails, and by the next command if the process is killed.
    """
    partial = _beside(path, "partial")
    with write_errors(path), output_lock(path):
        shutil.rmtree(partial, ignore_errors=True)
        if os.path.lexists(path) and not (path.is_dir() and not os.listdir(path)):
            raise DataError(
                f"{printable(str(path))} exists already; remove it or choose another output path."
            )
        partial.mkdir()
        try:
            yield partial
            if path.is_dir():
                path.rmdir()  # an empty one, which Windows does not replace
            os.replace(partial, path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def output_lock(path: Path) -> AbstractContextManager[None]:
    """Be the only command that writes the folder `path`; DataError says who else does."""
    return locked(_beside(path, "lock"), path)


def _beside(path: Path, kind: str) -> Path:
    """A name beside `path` that no user gives to a file."""
    name = f".{path.name}.protorect-{kind}"
    if len(os.fsencode(name)) > LONGEST_NAME:
        digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()
        name = f".{digest}.protorect-{kind}"
    return path.parent / name


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise DataError if a file cannot be written there, before long work; no file is left."""
    target = Path(path).resolve()
    with write_errors(path):
        _check_target(target)
        if target.parent.is_dir() and not target.exists():
            with _temporary(target.parent, target.suffix):
                return


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, completely or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def sync_folders(folders: Iterable[Path]) -> None:
    """Write the entries of folders to disk, where the system can."""
    for folder in folders:
        with suppress(OSError):  # some systems do not open folders, or do not sync them
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_target(target: Path) -> None:
    """Raise OSError if `target` is a folder, or if it cannot be created where it is."""
    if target.is_dir():
        raise OSError("it is a folder; give the name of a file")
    nearest = next(part for part in (target, *target.parents) if part.exists())
    if nearest != target and not nearest.is_dir():
        raise OSError(f"{nearest.name} is not a folder")
    if not os.access(nearest, os.W_OK):
        raise OSError(f"{nearest.name} is write-protected")


@contextmanager
def _temporary(folder: Path | None, suffix: str) -> Iterator[Path]:
    """A new empty file that is removed in the end, or by the next command if this one is killed.

    It is locked meanwhile, so that others see that it is in use.
    """
    if folder is not None:
        remove_temporary_files(folder)
    handle, name = _new_locked_file(folder, suffix if len(suffix) <= _LONGEST_SUFFIX else "")
    try:
        if fcntl is None:
            os.close(handle)  # Windows does not rename an open file
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
        if fcntl is not None:
            os.close(handle)


def _new_locked_file(folder: Path | None, suffix: str) -> tuple[int, str]:
    while True:
        handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=suffix, dir=folder)
        with suppress(OSError):  # a file system without locks
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):
            return handle, name
        os.close(handle)  # another command has removed it before it was locked


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files that killed commands have left in a folder."""
    with suppress(OSError):  # the folder is missing, or cannot be read
        for name in filter(_TEMPORARY.fullmatch, os.listdir(folder)):
            with suppress(OSError):  # it is gone, or not ours
                handle = _open_nonblocking(os.path.join(folder, name), os.O_RDWR)
                try:
                    if fcntl is not None and stat.S_ISREG(os.fstat(handle).st_mode):
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if it is in use
                        os.unlink(os.path.join(folder, name))
                finally:
                    os.close(handle)


@contextmanager
def file_errors(action: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an OSError into the DataError "cannot `action` `path`: reason."."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot {action} {printable(path)}: {reason}.") from error


read_errors = partial(file_errors, "read")
write_errors = partial(file_errors, "write")


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # which Windows does not have


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
