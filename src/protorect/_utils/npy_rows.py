"""An array on disk, a row a picture, written by several processes at once."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class RowFile:
    """A .npy file of (rows, *shape).

    Parameters
    ----------
    path
        Where it is.
    start
        Bytes of its header.
    shape
        Of a row: (size, size, channels) of a picture.
    dtype
        Of its numbers, as numpy writes it in a header.
    """

    path: str
    start: int
    shape: tuple[int, ...]
    dtype: str = "|u1"

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def write(self, file: int, row: int, values: NDArray[Any]) -> None:
        """Write one row, or several from there on, through an open file descriptor."""
        data = np.ascontiguousarray(values, dtype=self.dtype).data.cast("B")
        at = self.start + row * self.row_bytes
        while data:  # the system may take less than all of it
            written = os.pwrite(file, data, at)
            data, at = data[written:], at + written


def create_rows(path: Path, rows: int, shape: tuple[int, ...], dtype: str = "|u1") -> RowFile:
    """Make the file in its full length, so that a full disk is known before the work begins."""
    with path.open("wb") as file:
        _write_header(file, rows, shape, dtype)
        made = RowFile(str(path), file.tell(), shape, dtype)
        length = rows * made.row_bytes
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), made.start, length)
        else:
            file.truncate(made.start + length)
    return made


def keep_rows(rows: RowFile, kept: NDArray[np.intp]) -> None:
    """Close the gaps left by rows that are not kept; a bounded number is in memory at a time."""
    if not len(kept):
        raise ValueError("no row is kept")
    shape = (kept.max() + 1, *rows.shape)
    array = np.memmap(rows.path, rows.dtype, "r+", rows.start, shape=shape)
    for first in range(0, len(kept), _ROWS_AT_ONCE):
        part = kept[first : first + _ROWS_AT_ONCE]
        array[first : first + len(part)] = array[part]
    array.flush()
    del array
    with open(rows.path, "r+b") as file:
        _write_header(file, len(kept), rows.shape, rows.dtype)
        if file.tell() != rows.start:
            raise ValueError("the header of an array changed its length")
        file.truncate(rows.start + len(kept) * rows.row_bytes)


def _write_header(file: object, rows: int, shape: tuple[int, ...], dtype: str) -> None:
    # numpy leaves room for the number of rows to change, so headers are of the same length.
    header = {"descr": dtype, "fortran_order": False, "shape": (rows, *shape)}
    npy.write_array_header_1_0(file, header)  # type: ignore[arg-type]
