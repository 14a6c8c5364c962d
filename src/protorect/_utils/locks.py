"""A lock that one command holds at a time, and that dies with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protorect.errors import DataError


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path`, whose folder is made; DataError if another command holds it."""
    file = None
    while file is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _held(path, what)
    try:
        yield
    finally:
        os.close(file)  # which lets go of the lock


def _held(path: Path, what: str) -> int | None:
    """The open lock file; None if its last holder removed it while we waited for it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except FileNotFoundError:
        return None
    try:
        _take(file)
        if os.path.samestat(os.fstat(file), os.stat(path)):
            return file
    except FileNotFoundError:
        pass
    except BlockingIOError:
        os.close(file)
        raise DataError(
            f"{what} is being written by another command; wait for it, or give another name."
        ) from None
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None


def _take(file: int) -> None:
    """Lock an open file at once or not at all; a system without such locks goes without."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
