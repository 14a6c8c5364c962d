"""Files appear whole or not at all, and a file that cannot be written is a clear sentence."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protorect.errors import DataError


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside `path` to write to; rename it to `path` only if the block succeeds.

    The temporary name keeps the suffix of `path`, for writers that look at it.
    """
    path = Path(path)
    try:
        with _beside(path) as beside:
            yield beside
            os.chmod(beside, 0o666 & ~_umask())
            os.replace(beside, path)
    except OSError as error:
        raise _cannot_write(path, error) from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise DataError if a file cannot be written there; to be asked before long work."""
    path = Path(path)
    try:
        with _beside(path):
            pass
    except OSError as error:
        raise _cannot_write(path, error) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    with written_whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A new empty file in the folder of `path`, gone in the end."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder; give the name of a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _cannot_write(path: Path, error: OSError) -> DataError:
    return DataError(f"cannot write {path}: {error.strerror or error}.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
