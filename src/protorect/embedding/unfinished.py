"""An extraction under way: a folder beside the target, kept until all of it is done.

    NAME.partial/
        lock            held while a command works here
        pictures/       a plain folder of pictures, packed; made anew by each command
        store/          the feature store that is being filled
        blocks.npy      a checksum for each finished block of rows

A block counts as finished if its rows have the checksum that was written after them. So whatever
ended a command, a loss of power included, nothing half-written is taken for features.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect._utils.arrays import save_arrays
from protorect._utils.locks import locked
from protorect._utils.manifest import MANIFEST
from protorect._utils.npy_rows import RowFile, create_rows
from protorect.datasets.packed import PackedSplit
from protorect.embedding.finished import check_made_by, is_store
from protorect.embedding.store import FEATURES, FeatureStore, write_labels, write_manifest
from protorect.errors import DataError

_LOCK, _PICTURES, _STORE, _BLOCKS = "lock", "pictures", "store", "blocks.npy"
_FEATURE, _CHECKSUM = "<f4", "<u8"  # as numpy writes them in headers
_FINISHED = 1 << 32  # above any checksum; a block that was never written has 0


@dataclass(frozen=True)
class Blocks:
    """The features of n pictures, filled by several processes, a block of rows at a time."""

    features: RowFile
    checksums: RowFile
    n: int
    size: int

    def rows(self, number: int) -> slice:
        """The rows of a block."""
        return slice(number * self.size, min((number + 1) * self.size, self.n))

    def length(self, number: int) -> int:
        """How many rows a block has."""
        rows = self.rows(number)
        return int(rows.stop - rows.start)

    def write(self, number: int, values: NDArray[np.float32]) -> None:
        """Write the features of a block, then that it is finished."""
        _write(self.features, number * self.size, values)
        _write(self.checksums, number, np.array(_checksum(values)))

    def missing(self) -> list[int]:
        """The blocks that are not finished."""
        marks = np.load(self.checksums.path, mmap_mode="r", allow_pickle=False)
        features = np.load(self.features.path, mmap_mode="r", allow_pickle=False)
        return [
            number
            for number, mark in enumerate(marks)
            if not mark or mark != _checksum(features[self.rows(number)])
        ]


@dataclass(frozen=True)
class Unfinished:
    """The folder of the extraction that will become `out`."""

    out: Path
    folder: Path

    @property
    def pictures(self) -> Path:
        """For packed pictures; gone when the command ends."""
        return self.folder / _PICTURES / "packed"

    @property
    def _store(self) -> Path:
        return self.folder / _STORE

    def begin(self, pictures: PackedSplit, dim: int, made_by: dict[str, Any], block: int) -> Blocks:
        """Make the store, or take up the one that is there if the same would have made it."""
        if (self._store / MANIFEST).exists():
            check_made_by(self.folder, FeatureStore.open(self._store).made_by, made_by)
        else:
            self._make_store(pictures, dim, made_by)
        n = len(pictures.labels)
        count = -(-n // block)
        features = _row_file(self._store / FEATURES, (n, dim), _FEATURE)
        if features is None:
            raise DataError(f"{self.folder} is damaged. Remove it and extract again.")
        checksums = _row_file(self.folder / _BLOCKS, (count,), _CHECKSUM)
        if checksums is None:  # of blocks of another size, too
            checksums = create_rows(self.folder / _BLOCKS, count, (), _CHECKSUM)
        return Blocks(features, checksums, n, block)

    def finish(self) -> None:
        """Let the features appear at `out`, all at once."""
        with (self._store / FEATURES).open("rb+") as file:
            os.fsync(file.fileno())
        if is_store(self.out):
            os.replace(self._store, self.out)
            return
        store = FeatureStore.open(self._store)
        save_arrays(
            self.out,
            features=store.features,
            labels=store.labels,
            class_names=np.array(store.class_names),
            manifest=np.array(json.dumps(store.made_by)),
        )
        self.discard()

    def discard(self) -> None:
        """Remove what is unfinished."""
        shutil.rmtree(self._store, ignore_errors=True)

    def tidy(self) -> None:
        """Remove what no later command could use."""
        shutil.rmtree(self.folder / _PICTURES, ignore_errors=True)
        if not (self._store / MANIFEST).exists():
            shutil.rmtree(self.folder, ignore_errors=True)

    def _make_store(self, pictures: PackedSplit, dim: int, made_by: dict[str, Any]) -> None:
        self.discard()
        self._store.mkdir()
        (self.folder / _BLOCKS).unlink(missing_ok=True)
        shape = (len(pictures.labels), dim)
        create_rows(self._store / FEATURES, shape[0], (dim,), _FEATURE)
        write_labels(self._store, pictures.labels, pictures.class_names)
        write_manifest(self._store, shape, "float32", made_by)


@contextmanager
def unfinished(out: Path) -> Iterator[Unfinished]:
    """Give the folder in which `out` is made, to this command alone."""
    folder = out.parent / f"{out.name}.partial"
    work = Unfinished(out, folder)
    try:
        _check_ours(folder)
        with locked(folder / _LOCK, str(out)):
            try:
                shutil.rmtree(folder / _PICTURES, ignore_errors=True)  # a killed command's
                yield work
            finally:
                work.tidy()
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror or error}.") from error


def _check_ours(folder: Path) -> None:
    if folder.is_dir():
        foreign = set(os.listdir(folder)) - {_LOCK, _PICTURES, _STORE, _BLOCKS}
        if foreign:
            raise DataError(
                f"{folder} is needed for an extraction under way and holds something else "
                f"({min(foreign)}). Move it away or give another name."
            )


def _row_file(path: Path, shape: tuple[int, ...], dtype: str) -> RowFile | None:
    """A file to write rows to; None if it is not there, or not as it should be."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if not isinstance(array, np.memmap) or array.shape != shape or array.dtype != dtype:
        return None
    return RowFile(str(path), array.offset, shape[1:], dtype)


def _write(rows: RowFile, row: int, values: NDArray[Any]) -> None:
    file = os.open(rows.path, os.O_WRONLY)
    try:
        rows.write(file, row, values)
    finally:
        os.close(file)


def _checksum(values: NDArray[np.float32]) -> np.uint64:
    return np.uint64(_FINISHED | zlib.crc32(np.ascontiguousarray(values).data))
