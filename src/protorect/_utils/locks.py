"""Lock files, held by one command at a time and released when its process ends."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from protorect._utils.text import printable
from protorect.errors import DataError

_TRIES = 5
_SECONDS = 0.1  # enough to try again where the last holder has just removed its lock file


@contextmanager
def locked(path: Path, what: str | Path) -> Iterator[None]:
    """Hold the lock file `path`; DataError if another command holds it.

    Its folder is created if missing. `what` is the file or folder that the message names.
    """
    lock = FileLock(path, timeout=_SECONDS, poll_interval=_SECONDS / 10)
    try:
        _acquire(lock, path)
    except Timeout:
        raise DataError(
            f"{printable(str(what))} is being written by another command{_holder(path)}; wait for "
            "it, or give another name."
        ) from None
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {printable(str(what))}: {reason}.") from error
    with suppress(OSError):  # Windows: a locked file is not written
        path.write_text(f"{os.getpid()} {platform.node()}", encoding="utf-8")
    try:
        yield
    finally:
        with suppress(OSError):  # Windows: an open file is removed by the release
            path.unlink()  # before the release: whoever opened it sees that it is gone
        lock.release()


def _acquire(lock: BaseFileLock, path: Path) -> None:
    for left in reversed(range(_TRIES)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            return
        except FileNotFoundError:  # the last holder has just removed the folder
            if not left:
                raise


def _holder(path: Path) -> str:
    """Who holds a lock, as a part of a sentence; empty if that is not known."""
    try:
        process, _, host = path.read_text(encoding="utf-8", errors="replace")[:200].partition(" ")
    except OSError:
        return ""
    return f", process {process} on {printable(host)}" if process.isdecimal() else ""
