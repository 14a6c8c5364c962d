"""A folder that appears whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protorect._utils.text import printable
from protorect.errors import DataError

if sys.platform != "win32":
    import fcntl


@contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """Give a new folder beside `path` to fill; rename it to `path` only if the block succeeds.

    Whatever ends the block, an interrupt included, nothing half-written stays. What a process
    left that was killed outright, the next one that writes to the same place removes.
    """
    check_free(path)
    beside = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.partial"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        beside.mkdir()
        with _held(beside):
            yield beside
            os.replace(beside, path)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {printable(str(path))}: {reason}.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _remove_leftovers(path: Path) -> None:
    """Remove the partial folders of `path` whose processes live no more."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.partial")
    for folder in [one for one in path.parent.iterdir() if name.fullmatch(one.name)]:
        # One that is empty may be of a process that is about to hold it.
        if folder.is_dir() and any(folder.iterdir()):
            with _held(folder) as ours:
                if ours:
                    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Hold a folder as long as this process lives; False if another one holds it."""
    if sys.platform == "win32":  # where a folder cannot be held, leftovers stay
        yield False
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has it, or the file system knows no locks
        return False
    return True


def check_free(path: Path) -> None:
    """Raise DataError if something is there already; an empty folder is nothing."""
    try:
        taken = os.path.lexists(path) and not (path.is_dir() and not os.listdir(path))
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {printable(str(path))}: {reason}.") from error
    if taken:
        raise DataError(
            f"{printable(str(path))} exists already; remove it or give another name to --out."
        )
