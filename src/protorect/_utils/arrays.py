"""Arrays in .npz and .npy files: never unpickled, sizes checked before allocation."""

import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from protorect._utils.files import read_errors, written_whole
from protorect._utils.memory import physical_memory
from protorect.errors import DataError, damaged

Arrays = dict[str, NDArray[Any]]


def save_arrays(path: str | os.PathLike[str], **arrays: NDArray[Any]) -> None:
    """Write a .npz file with these arrays, completely or not at all."""
    with written_whole(path) as temporary, temporary.open("wb") as file:
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
    if not path.is_file():
        raise DataError(f"{path} is not a regular file; write its content to a .npz file first.")
    try:
        with read_errors(path), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            stored = {name.removesuffix(".npy") for name in names if name.endswith(".npy")}
            missing = [name for name in required if name not in stored]
            if missing:
                raise DataError(
                    f"{path} has no array {', '.join(missing)}; it holds "
                    f"{', '.join(sorted(stored)) or 'no arrays'}."
                )
            chosen = [*required, *(name for name in optional if name in stored)]
            return {name: _read(archive, f"{name}.npy", path) for name in chosen}
    except (zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} is not a .npz file, or only part of one.") from error


def map_array(path: Path, dtype: str, shape: tuple[int, ...], remedy: str) -> NDArray[Any]:
    """Map a .npy file of this type and shape; the DataError for any other ends with `remedy`."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise damaged(path, "the file is missing", remedy) from None
    except (ValueError, EOFError, OSError) as error:
        raise damaged(path, " ".join(str(error).split()).rstrip("."), remedy) from error
    if not isinstance(array, np.memmap) or array.dtype != dtype or array.shape != shape:
        actual = f"{getattr(array, 'dtype', '?')} {getattr(array, 'shape', '?')}"
        raise damaged(path, f"it holds {actual}, the manifest says {dtype} {shape}", remedy)
    if path.stat().st_size != array.offset + array.nbytes:
        raise damaged(path, "it is longer than its array", remedy)
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


def _read(archive: zipfile.ZipFile, member: str, path: Path) -> NDArray[Any]:
    try:
        with archive.open(member) as file:
            version = npy.read_magic(file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = header(file)
        if dtype.hasobject:
            raise DataError(
                f"{path}: {member} holds pickled objects, which are never read. "
                "Save plain arrays of numbers or strings."
            )
        size = math.prod(shape) * dtype.itemsize
        if size > archive.getinfo(member).file_size:
            raise DataError(f"{path}: {member} has less data than its shape {shape} needs.")
        if size > physical_memory():
            raise DataError(f"{path}: {member} of shape {shape} does not fit into memory.")
        with archive.open(member) as file:
            return np.asarray(npy.read_array(file, allow_pickle=False))
    except DataError:
        raise
    except Exception as error:  # numpy and zipfile raise many kinds of error on damaged files
        raise DataError(f"{path}: {member} cannot be read: {error}.") from error
