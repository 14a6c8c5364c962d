"""Work in threads: results in order, a bounded number of items under way."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

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


def processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
