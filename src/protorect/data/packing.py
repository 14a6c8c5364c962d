"""Reading, hashing, decoding and writing pictures, a chunk at a time, in several processes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from protorect.data.decoding import Decoded, decode
from protorect.data.rows import RowFile
from protorect.data.stored import StoredPicture, UnreadableError
from protorect.processes import processes

PICTURES_IN_A_CHUNK = 64


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
    """Give a function that packs chunks and yields what became of them, in order."""
    with processes(workers) as run:
        yield lambda chunks: run(pack_chunk, chunks)
