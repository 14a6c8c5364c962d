"""Lock files, held by one command at a time and released when its process ends."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from protorect._utils.text import printable
from protorect.errors import DataError

_SECONDS = 0.1  # enough to try again where the last holder has just removed its lock file


@contextmanager
def locked(path: Path, what: str | Path) -> Iterator[None]:
    """Hold the lock file `path`; DataError if another command holds it.

    Its folder is created if missing. `what` is the file or folder that the message names.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=_SECONDS, poll_interval=_SECONDS / 10)
    try:
        lock.acquire()
    except Timeout:
        raise DataError(
            f"{printable(str(what))} is being written by another command; wait for it, "
            "or give another name."
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows: an open file is removed by the release
            path.unlink()  # before the release: whoever opened it sees that it is gone
        lock.release()
