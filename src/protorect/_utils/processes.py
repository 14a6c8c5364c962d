"""Work divided among processes: results in order, a bounded number of pieces under way."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context, parent_process
from typing import Protocol, TypeVar

from protorect.errors import DataError

_WAITING = 4  # pieces for each worker: enough to keep it busy, few enough to bound memory
_Piece = TypeVar("_Piece")
_Done = TypeVar("_Done")


class Mapper(Protocol):
    """A function (work, pieces) -> what became of each piece, in order."""

    def __call__(
        self, work: Callable[[_Piece], _Done], pieces: Iterable[_Piece], /
    ) -> Iterator[_Done]: ...


@contextmanager
def processes(workers: int) -> Iterator[Mapper]:
    """Give a function that works on pieces in so many processes; with one, in this process."""
    if workers == 1:
        yield map
        return
    # A forked copy of a process with threads may hang; both of these start from a clean one.
    method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    pool = ProcessPoolExecutor(workers, get_context(method), _prepare_worker)

    def in_order(work: Callable[[_Piece], _Done], pieces: Iterable[_Piece], /) -> Iterator[_Done]:
        running: deque[Future[_Done]] = deque()
        for piece in pieces:
            running.append(pool.submit(work, piece))
            if len(running) >= workers * _WAITING:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()

    try:
        yield in_order
    except BrokenProcessPool as error:
        raise DataError(
            "a worker process was ended from outside, perhaps for want of memory; "
            "try again with --workers 1."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
