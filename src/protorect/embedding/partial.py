"""Features that are being extracted, until all are done in a folder NAME.partial beside NAME.

The folder contains:

    lock            of the command that works here
    pictures/       a folder of pictures, packed; made again by each command
    store/          the feature store that is being filled
    blocks.npy      which blocks of rows are done, one boolean per block
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from protorect._utils.arrays import create_array, save_arrays
from protorect._utils.files import write_errors
from protorect._utils.locks import locked
from protorect._utils.manifest import MANIFEST
from protorect.datasets.packed import PackedSplit
from protorect.embedding.store import (
    FEATURES,
    FeatureStore,
    check_provenance,
    create_store,
    is_store,
)
from protorect.errors import DataError

_LOCK, _PICTURES, _STORE, _DONE = "lock", "pictures", "store", "blocks.npy"
_SECONDS_BETWEEN_FLUSHES = 1.0  # lost at most when the process is killed


class PartialRows:
    """Feature rows that are filled block by block, with a bitmap of the blocks that are done."""

    def __init__(self, features: Any, done: Any, block: int) -> None:
        self._features, self._done, self._block = features, done, block
        self._unflushed: list[int] = []
        self._last_flush = time.monotonic()

    def __len__(self) -> int:
        return len(self._features)

    def missing(self) -> list[slice]:
        """The rows of each block that is not done."""
        starts = np.flatnonzero(~self._done) * self._block
        return [slice(start, min(start + self._block, len(self))) for start in starts.tolist()]

    def write(self, rows: slice, features: NDArray[np.float32]) -> None:
        """Write the features of one block."""
        self._features[rows] = features
        self._unflushed.append(rows.start // self._block)
        if time.monotonic() - self._last_flush > _SECONDS_BETWEEN_FLUSHES:
            self.flush()

    def flush(self) -> None:
        """Write the rows to the disk, then mark their blocks as done.

        In this order, a mark on the disk implies its rows: after a kill or a loss of power, a
        block is either complete or computed again. If flushing fails, the blocks are never marked,
        because the system reports lost data only once.
        """
        blocks, self._unflushed = self._unflushed, []
        self._features.flush()
        self._done[blocks] = True
        self._done.flush()
        self._last_flush = time.monotonic()


class PartialExtraction:
    """The folder of the extraction that becomes `out`."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out.parent / f"{out.name}.partial"
        self.pictures = self.folder / _PICTURES  # removed when the command ends
        self.store = self.folder / _STORE

    def open_rows(
        self, split: PackedSplit, dim: int, provenance: dict[str, Any], block: int
    ) -> PartialRows:
        """The rows of a new store, or of the one that an interrupted extraction has left."""
        if (self.store / MANIFEST).exists():
            stored = FeatureStore.open(self.store)
            check_provenance(self.folder, stored.provenance, provenance)
            if stored.features.shape != (len(split.labels), dim):
                raise DataError(f"{self.folder} is damaged. Remove it and extract again.")
            features: Any = npy.open_memmap(self.store / FEATURES, "r+")
        else:
            self.discard()
            features = create_store(self.store, dim, split.labels, split.class_names, provenance)
        return PartialRows(features, self._open_done(-(-len(features) // block)), block)

    def finish(self) -> None:
        """Make the features appear at `out`, all at once."""
        if is_store(self.out):
            if self.out.is_dir():
                self.out.rmdir()  # an empty one, which Windows does not replace
            os.replace(self.store, self.out)
            return
        store = FeatureStore.open(self.store)
        save_arrays(
            self.out,
            features=store.features,
            labels=store.labels,
            class_names=np.array(store.class_names),
            manifest=np.array(json.dumps(store.provenance)),
        )
        self.discard()

    def discard(self) -> None:
        """Remove what was done so far."""
        (self.folder / _DONE).unlink(missing_ok=True)  # first: it marks rows as done
        shutil.rmtree(self.store, ignore_errors=True)

    def _open_done(self, blocks: int) -> Any:
        """The bitmap; a new one if there is none for this number of blocks."""
        path = self.folder / _DONE
        with suppress(OSError, ValueError, EOFError):
            done = npy.open_memmap(path, "r+")
            if done.shape == (blocks,) and done.dtype == bool:
                return done
        return create_array(path, "|b1", (blocks,))


@contextmanager
def partial_extraction(out: Path) -> Iterator[PartialExtraction]:
    """Give the folder in which `out` is made, to one command at a time."""
    partial = PartialExtraction(out)
    folder = partial.folder
    with write_errors(out):
        names = set(os.listdir(folder)) if folder.is_dir() else set()
        if other := names - {_LOCK, _PICTURES, _STORE, _DONE}:
            raise DataError(
                f"{folder} is needed for the unfinished extraction and holds something else "
                f"({min(other)}). Move it away or give another name."
            )
        with locked(folder / _LOCK, out):
            try:
                shutil.rmtree(partial.pictures, ignore_errors=True)  # of a killed command
                yield partial
            finally:
                shutil.rmtree(partial.pictures, ignore_errors=True)
                if not (partial.store / MANIFEST).exists():  # nothing to resume
                    shutil.rmtree(folder, ignore_errors=True)
