"""Reading, hashing, decoding and writing pictures, a chunk at a time, in several processes."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_all_start_methods, get_context, parent_process
from typing import NamedTuple

import numpy as np

from protorect.data.decoding import Decoded, decode
from protorect.data.rows import RowFile
from protorect.data.stored import StoredPicture, UnreadableError
from protorect.errors import DataError

PICTURES_IN_A_CHUNK = 64
_CHUNKS_WAITING = 4  # for each worker: enough to keep it busy, few enough to bound memory


@dataclass(frozen=True)
class Chunk:
    """Pictures to pack.

    Parameters
    ----------
    pictures
        Each with the row of its first turn.
    strides
        For each picture, how many rows on its next turn is.
    rows
        Where they go.
    turns
        1, or 4 to write all quarter turns.
    ink_high
        Whether to swap dark and bright.
    """

    pictures: tuple[tuple[StoredPicture, int], ...]
    strides: tuple[int, ...]
    rows: RowFile
    turns: int
    ink_high: bool


class Entry(NamedTuple):
    """What became of one picture; `problem` is empty if it was packed."""

    sha256: str
    width: int
    height: int
    problem: str


@dataclass
class Packed:
    """What became of a chunk, and the sums over its pictures for means and deviations."""

    entries: list[Entry] = field(default_factory=list)
    total: list[int] = field(default_factory=list)
    squares: list[int] = field(default_factory=list)


def pack_chunk(chunk: Chunk) -> Packed:
    """Pack the pictures of a chunk; an unreadable one leaves its rows as they are."""
    size, _, channels = chunk.rows.shape
    histogram = np.zeros((channels, 256), np.int64)
    packed = Packed()
    file = os.open(chunk.rows.path, os.O_WRONLY)
    try:
        for (picture, row), stride in zip(chunk.pictures, chunk.strides, strict=True):
            entry, decoded = _read(picture, size, channels)
            packed.entries.append(entry)
            if decoded is None:
                continue
            histogram += decoded.histogram
            pixels = 255 - decoded.pixels if chunk.ink_high else decoded.pixels
            for turn in range(chunk.turns):
                chunk.rows.write(file, row + turn * stride, np.rot90(pixels, turn))
    finally:
        os.close(file)
    # Whole numbers: the sum does not depend on how the pictures were divided among processes.
    values = np.arange(256)[::-1] if chunk.ink_high else np.arange(256)
    packed.total = (histogram @ values).tolist()
    packed.squares = (histogram @ values**2).tolist()
    return packed


def _read(picture: StoredPicture, size: int, channels: int) -> tuple[Entry, Decoded | None]:
    digest = ""
    try:
        data = picture.read()
        digest = hashlib.sha256(data).hexdigest()
        decoded = decode(data, size, channels, picture.shape)
    except UnreadableError as error:
        return Entry(digest, 0, 0, str(error)), None
    return Entry(digest, decoded.width, decoded.height, ""), decoded


@contextmanager
def packing_processes(workers: int) -> Iterator[Callable[[Iterable[Chunk]], Iterator[Packed]]]:
    """Give a function that packs chunks and yields what became of them, in order.

    With one worker everything happens in this process.
    """
    if workers == 1:
        yield lambda chunks: map(pack_chunk, chunks)
        return
    # A forked copy of a process with threads may hang; both of these start from a clean one.
    method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    pool = ProcessPoolExecutor(workers, get_context(method), _prepare_worker)
    try:
        yield lambda chunks: _in_order(pool, chunks, workers * _CHUNKS_WAITING)
    except BrokenProcessPool as error:
        raise DataError(
            "a worker process was ended from outside, perhaps for want of memory; "
            "try again with --workers 1."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, chunks: Iterable[Chunk], waiting: int) -> Iterator[Packed]:
    running: deque[Future[Packed]] = deque()
    for chunk in chunks:
        running.append(pool.submit(pack_chunk, chunk))
        if len(running) >= waiting:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
