"""Files appear whole or not at all, and a file that cannot be written is a clear sentence."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protorect.errors import DataError


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to; what was written there appears at `path` if the block succeeds.

    A link is followed, the permissions of a file that is replaced are kept, and what is no
    ordinary file (a pipe, a device) is written into. The temporary name keeps the suffix of
    `path`, for writers that look at it.
    """
    target = Path(path).resolve()
    try:
        _check_target(target, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        ordinary = target.is_file() or not target.exists()
        folder = target.parent if ordinary else None  # None: the system's place for such files
        with _temporary(folder, target.suffix) as beside:
            yield beside
            if not ordinary:
                with beside.open("rb") as written, target.open("wb") as sink:
                    shutil.copyfileobj(written, sink)
            else:
                mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
                os.chmod(beside, mode)
                os.replace(beside, target)
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise DataError if a file cannot be written there; to be asked before long work.

    Nothing is left behind, folders that would have to be made included.
    """
    target = Path(path).resolve()
    try:
        _check_target(target, path)
        if target.parent.is_dir() and not target.exists():
            with _temporary(target.parent, target.suffix):
                return
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    with written_whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def _check_target(target: Path, path: str | os.PathLike[str]) -> None:
    """What can be known before: the nearest thing that exists must be open to us."""
    if target.is_dir():
        raise _cannot_write(path, "it is a folder; give the name of a file")
    nearest = next(part for part in (target, *target.parents) if part.exists())
    if nearest != target and not nearest.is_dir():
        raise _cannot_write(path, f"{nearest.name} is not a folder")
    if not os.access(nearest, os.W_OK):
        raise _cannot_write(path, f"{nearest.name} is write-protected")


@contextmanager
def _temporary(folder: Path | None, suffix: str) -> Iterator[Path]:
    """A new empty file, gone in the end."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=suffix, dir=folder)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _cannot_write(path: str | os.PathLike[str], reason: str) -> DataError:
    return DataError(f"cannot write {os.fspath(path)}: {reason}.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
