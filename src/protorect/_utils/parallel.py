"""Work in threads or processes: results in order, a bounded number of items under way."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context, parent_process
from typing import Protocol, TypeVar

from protorect.errors import DataError

_QUEUED = 4  # items for each worker: enough to keep it busy, few enough to bound memory
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Mapper(Protocol):
    """A function like `map`."""

    def __call__(
        self, work: Callable[[_Item], _Result], items: Iterable[_Item], /
    ) -> Iterator[_Result]: ...


def map_in_order(
    pool: Executor, work: Callable[[_Item], _Result], items: Iterable[_Item], limit: int
) -> Iterator[_Result]:
    """`pool.map` that reads at most `limit` items ahead."""
    pending: deque[Future[_Result]] = deque()
    for item in items:
        pending.append(pool.submit(work, item))
        if len(pending) >= limit:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


@contextmanager
def threads(workers: int, prepare: Callable[[], None] | None = None) -> Iterator[Mapper]:
    """Give a `map` that works in this many threads, which end with the block.

    Each thread calls `prepare` when it starts.
    """
    pool = ThreadPoolExecutor(workers, "protorect", prepare)
    try:
        yield lambda work, items: map_in_order(pool, work, items, workers * _QUEUED)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def processes(workers: int, prepare: Callable[[], None] | None = None) -> Iterator[Mapper]:
    """Give a `map` that works in this many processes; with one, in this process.

    Each other process calls `prepare` when it starts.
    For work that holds the interpreter's lock most of the time. The function and its items and
    results are pickled.
    """
    if workers == 1:
        yield map
        return
    # A forked copy of a process with threads may hang; both of these start from a clean one.
    method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    pool = ProcessPoolExecutor(workers, get_context(method), _prepare_worker, (prepare,))
    try:
        yield lambda work, items: map_in_order(pool, work, items, workers * _QUEUED)
    except BrokenProcessPool as error:
        raise DataError(
            "a worker process ended early, perhaps for lack of memory; try again with one worker. "
            'A script has to call this inside `if __name__ == "__main__":`.'
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _prepare_worker(prepare: Callable[[], None] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the worker
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()


def _exit_with_parent() -> None:
    """End this worker when its parent is gone, which may have been killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
