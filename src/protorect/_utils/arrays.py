"""Arrays in .npz and .npy files: never unpickled, sizes checked before allocation."""

import io
import math
import os
import sys
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from protorect._utils.files import atomic_write, open_file
from protorect._utils.memory import physical_memory
from protorect._utils.text import on_one_line
from protorect.errors import DataError, damaged

Arrays = dict[str, NDArray[Any]]
_LONGEST_HEADER = 2**14  # bytes; numpy itself accepts 10,000
_MOST_COMPRESSED = 1032  # to one, by the Deflate algorithm
_MAX_UNPACKED = 2**28  # bytes; an array may have more if it is not compressed much
_MAX_EXPANSION = 100  # times its compressed size


def save_arrays(path: str | os.PathLike[str], **arrays: NDArray[Any]) -> None:
    """Write a .npz file with these arrays, completely or not at all."""
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_arrays(
    path: str | os.PathLike[str], required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Arrays:
    """Read the `required` arrays of a .npz file, and the `optional` ones that it has."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"there is no file {path}.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a .npz file.")
    with open_file(path) as file:
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:  # zipfile raises many kinds of error on damaged files
            raise DataError(f"{path} is not a .npz file, or only part of one.") from error
        names = archive.namelist()
        stored = {name.removesuffix(".npy") for name in names if name.endswith(".npy")}
        missing = [name for name in required if name not in stored]
        if missing:
            raise DataError(
                f"{path} has no array {', '.join(missing)}; it holds "
                f"{on_one_line(', '.join(sorted(stored)) or 'no arrays')}."
            )
        chosen = [*required, *(name for name in optional if name in stored)]
        return {name: _read(archive, f"{name}.npy", path) for name in chosen}


def map_array(path: Path, dtype: str | None, shape: tuple[int, ...], remedy: str) -> NDArray[Any]:
    """Map a .npy file of this shape and type; None accepts any numbers or text.

    The DataError for any other ends with `remedy`.
    """
    if not path.exists():
        raise damaged(path, "the file is missing", remedy)
    with open_file(path) as file:
        try:
            stored, actual, order, start = _read_header(file)
        except Exception as error:  # numpy raises many kinds of error on damaged files
            raise damaged(path, on_one_line(error), remedy) from error
        if stored != shape or dtype not in (None, actual):
            reason = f"it holds {actual} {stored}, the manifest says {dtype or ''} {shape}"
            raise damaged(path, on_one_line(reason), remedy)
        end = start + math.prod(shape) * actual.itemsize
        if (length := os.fstat(file.fileno()).st_size) != end:
            reason = f"it is {'longer' if length > end else 'shorter'} than its array"
            raise damaged(path, reason, remedy)
        array = np.memmap(file, actual, "r", start, shape, order)
        if actual.kind == "U" and not _is_unicode(array):
            raise damaged(path, "it holds text that is not Unicode", remedy)
        return array


def create_array(path: Path, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Create a .npy file and map it for writing.

    Its space is reserved at once: writing to a mapped file crashes where the disk is full.
    """
    array = npy.open_memmap(path, "w+", dtype, shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, array.offset + array.nbytes)
    return array


def write_rows(path: Path, start: int, rows: NDArray[Any]) -> None:
    """Write rows to an array that `create_array` made, from row `start` on.

    Unlike a mapped array, the file does not count as memory of the process.
    """
    with path.open("r+b") as file:
        npy.read_magic(file)
        npy.read_array_header_1_0(file)
        file.seek(start * math.prod(rows.shape[1:]) * rows.itemsize, os.SEEK_CUR)
        file.write(np.ascontiguousarray(rows).data)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], Literal["C", "F"], int]:
    """Shape, type, order and position of an array in a .npy file; any error if there is none."""
    start = io.BytesIO(file.read(_LONGEST_HEADER))
    with warnings.catch_warnings(action="ignore"):  # of headers that Python 2 wrote
        version = npy.read_magic(start)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(start)
    if dtype.hasobject:
        raise DataError(
            "it holds pickled objects, which are never read. Save plain arrays of numbers or text"
        )
    if dtype.kind not in "biufcSU" or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise DataError(f"{shape} of {str(dtype)[:40]} is no array of numbers or text")
    return shape, dtype, "F" if fortran else "C", start.tell()


def _read(archive: zipfile.ZipFile, member: str, path: Path) -> NDArray[Any]:
    try:
        info = archive.getinfo(member)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError("it is compressed in another way than numpy does")
        with archive.open(info) as file:
            shape, dtype, _, _ = _read_header(file)
        size = math.prod(shape) * dtype.itemsize
        if size > info.file_size or size > _MOST_COMPRESSED * info.compress_size:
            raise DataError(f"it has less data than its shape {shape} needs")
        if size > max(_MAX_UNPACKED, _MAX_EXPANSION * info.compress_size):
            raise DataError(
                f"it unpacks to more than {_MAX_EXPANSION} times its size, as no features do; if "
                "you trust it, save it again without compression"
            )
        if size > physical_memory():
            raise DataError(f"its shape {shape} does not fit into memory")
        with archive.open(info) as file, warnings.catch_warnings(action="ignore"):
            array = np.asarray(npy.read_array(file, allow_pickle=False))
        if array.dtype.kind == "U" and not _is_unicode(array):
            raise DataError("it holds text that is not Unicode")
        return array
    except Exception as error:  # numpy and zipfile raise many kinds of error on damaged files
        raise DataError(f"{path}: {member} cannot be read: {on_one_line(error)}.") from error


def _is_unicode(text: NDArray[Any]) -> bool:
    """Whether all characters are code points, surrogates excluded; numpy does not check that."""
    codes = text.ravel(order="K").view(np.dtype(np.uint32).newbyteorder(text.dtype.byteorder))
    return not ((codes > sys.maxunicode) | (codes >> 11 == 0xD800 >> 11)).any()
