"""Reading, hashing, decoding and writing pictures, a chunk at a time, in several processes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from protorect._utils.npy_rows import RowFile
from protorect._utils.parallel import processes
from protorect.images.decode import Decoded, decode
from protorect.images.stored import StoredPicture, UnreadableError

_PICTURES = 64  # in a chunk at most
_PIXEL_BYTES = 8 * 2**20  # in a chunk, but for a single large picture


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


class Packed(NamedTuple):
    """What became of a chunk.

    Parameters
    ----------
    entries
        One a picture.
    sums
        (2, channels), of the values of the packed pixels and of their squares.
    """

    entries: list[Entry]
    sums: NDArray[np.int64]


def pictures_in_a_chunk(row_bytes: int) -> int:
    """Enough that handing a chunk over costs little, few enough that it needs little memory."""
    return max(1, min(_PICTURES, _PIXEL_BYTES // row_bytes))


def pack_chunk(chunk: Chunk) -> Packed:
    """Pack the pictures of a chunk; an unreadable one leaves its rows as they are."""
    size, _, channels = chunk.rows.shape
    entries, readable = [], []
    file = os.open(chunk.rows.path, os.O_WRONLY)
    try:
        for (picture, row), stride in zip(chunk.pictures, chunk.strides, strict=True):
            entry, decoded = _read(picture, size, channels)
            entries.append(entry)
            if decoded is None:
                continue
            pixels = 255 - decoded.pixels if chunk.ink_high else decoded.pixels
            readable.append(pixels)
            for turn in range(chunk.turns):
                chunk.rows.write(file, row + turn * stride, np.rot90(pixels, turn))
    finally:
        os.close(file)
    # Whole numbers: the sum does not depend on how the pictures were divided among processes.
    values = np.arange(256)
    counts = histogram(np.stack(readable)) if readable else np.zeros((channels, 256), np.int64)
    return Packed(entries, np.stack([counts @ values, counts @ values**2]))


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


def histogram(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each value occurs, (n, height, width, channels) -> (channels, 256)."""
    column = pixels.reshape(-1, *pixels.shape[2:])  # one tall picture
    image = Image.fromarray(column[..., 0] if pixels.shape[-1] == 1 else column)
    return np.array(image.histogram(), np.int64).reshape(-1, 256)
