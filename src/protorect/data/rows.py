"""An array of pictures on disk, a row a picture, written by several processes at once."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class RowFile:
    """A .npy file of uint8 (rows, size, size, channels).

    Parameters
    ----------
    path
        Where it is.
    start
        Bytes of its header.
    shape
        (size, size, channels) of a row.
    """

    path: str
    start: int
    shape: tuple[int, int, int]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape)

    def write(self, file: int, row: int, pixels: NDArray[np.uint8]) -> None:
        """Write one row through an open file descriptor."""
        data = memoryview(pixels.tobytes())
        at = self.start + row * self.row_bytes
        while data:  # the system may take less than all of it
            written = os.pwrite(file, data, at)
            data, at = data[written:], at + written


def create_rows(path: Path, rows: int, shape: tuple[int, int, int]) -> RowFile:
    """Make the file in its full length, so that a full disk is known before the work begins."""
    with path.open("wb") as file:
        _write_header(file, rows, shape)
        start = file.tell()
        length = rows * math.prod(shape)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), start, length)
        else:
            file.truncate(start + length)
    return RowFile(str(path), start, shape)


def keep_rows(rows: RowFile, kept: NDArray[np.intp]) -> None:
    """Close the gaps left by rows that are not kept; a bounded number is in memory at a time."""
    if not len(kept):
        raise ValueError("no row is kept")
    array = np.memmap(rows.path, np.uint8, "r+", rows.start, shape=(kept.max() + 1, *rows.shape))
    for first in range(0, len(kept), _ROWS_AT_ONCE):
        part = kept[first : first + _ROWS_AT_ONCE]
        array[first : first + len(part)] = array[part]
    array.flush()
    del array
    with open(rows.path, "r+b") as file:
        _write_header(file, len(kept), rows.shape)
        if file.tell() != rows.start:
            raise ValueError("the header of an array changed its length")
        file.truncate(rows.start + len(kept) * rows.row_bytes)


def _write_header(file: object, rows: int, shape: tuple[int, int, int]) -> None:
    # numpy leaves room for the number of rows to change, so headers are of the same length.
    header = {"descr": "|u1", "fortran_order": False, "shape": (rows, *shape)}
    npy.write_array_header_1_0(file, header)  # type: ignore[arg-type]
