"""Features that are being extracted, until all are done in a folder NAME.partial beside NAME.

The folder contains:

    lock            of the command that works here
    pictures/       a folder of pictures, packed; made again by each command
    store/          the feature store that is being filled
    blocks.npy      which blocks of rows are done, one boolean per block
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from protorect._utils.arrays import create_array, save_arrays
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
        """Bring what was written to the disk, then mark it as done.

        In this order, a mark on the disk implies its rows: after a kill or a loss of power, a
        block is computed again or right. If flushing fails, the blocks are never marked, because
        the system reports lost data only once.
        """
        blocks, self._unflushed = self._unflushed, []
        self._features.flush()
        self._done[blocks] = True
        self._done.flush()
        self._last_flush = time.monotonic()


@dataclass(frozen=True)
class PartialExtraction:
    """The folder of the extraction that becomes `out`."""

    out: Path
    folder: Path

    @property
    def packed_pictures(self) -> Path:
        """Where a folder of pictures may be packed; removed when the command ends."""
        return self.folder / _PICTURES / "packed"

    @property
    def _store(self) -> Path:
        return self.folder / _STORE

    def open_rows(
        self, split: PackedSplit, dim: int, provenance: dict[str, Any], block: int
    ) -> PartialRows:
        """The rows of a new store, or of the one that an interrupted extraction has left."""
        if (self._store / MANIFEST).exists():
            stored = FeatureStore.open(self._store)
            check_provenance(self.folder, stored.provenance, provenance)
            if stored.features.shape != (len(split.labels), dim):
                raise DataError(f"{self.folder} is damaged. Remove it and extract again.")
            features: Any = npy.open_memmap(self._store / FEATURES, "r+")
        else:
            self.discard()
            features = create_store(self._store, dim, split.labels, split.class_names, provenance)
        return PartialRows(features, self._open_done(-(-len(features) // block)), block)

    def finish(self) -> None:
        """Make the features appear at `out`, all at once."""
        if is_store(self.out):
            if self.out.is_dir():
                self.out.rmdir()  # an empty one, which Windows does not replace
            os.replace(self._store, self.out)
            return
        store = FeatureStore.open(self._store)
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
        (self.folder / _DONE).unlink(missing_ok=True)  # first, as it vouches for the store
        shutil.rmtree(self._store, ignore_errors=True)

    def _open_done(self, blocks: int) -> Any:
        """The bitmap; a new one if there is none for this number of blocks."""
        path = self.folder / _DONE
        try:
            done = npy.open_memmap(path, "r+")
            if done.shape == (blocks,) and done.dtype == bool:
                return done
        except (OSError, ValueError, EOFError):
            pass
        return create_array(path, "|b1", (blocks,))

    def clean_up(self) -> None:
        """Remove what a later command cannot use."""
        shutil.rmtree(self.folder / _PICTURES, ignore_errors=True)
        if not (self._store / MANIFEST).exists():
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def partial_extraction(out: Path) -> Iterator[PartialExtraction]:
    """Give the folder in which `out` is made, to one command at a time."""
    folder = out.parent / f"{out.name}.partial"
    partial = PartialExtraction(out, folder)
    try:
        _check_contents(folder)
        with locked(folder / _LOCK, out):
            try:
                shutil.rmtree(folder / _PICTURES, ignore_errors=True)  # of a killed command
                yield partial
            finally:
                partial.clean_up()
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror or error}.") from error


def _check_contents(folder: Path) -> None:
    if folder.is_dir():
        other = set(os.listdir(folder)) - {_LOCK, _PICTURES, _STORE, _DONE}
        if other:
            raise DataError(
                f"{folder} is needed for the unfinished extraction and holds something else "
                f"({min(other)}). Move it away or give another name."
            )
