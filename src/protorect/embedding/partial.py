"""An unfinished extraction of the features NAME, kept in the folder NAME.partial beside it.

The folder contains:

    lock            of the command that works here
    pictures/       an archive of pictures, uncompressed; removed when the command ends
    store/          the feature store that is being filled, row by row
    progress.json   how many pictures are done, and which of them could not be read
    shorter/        a copy of the store without the rows of unreadable pictures; made at the end
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from protorect._utils.arrays import save_arrays
from protorect._utils.documents import read_json
from protorect._utils.files import write_errors
from protorect._utils.locks import locked
from protorect._utils.manifest import MANIFEST
from protorect.embedding.picture_sets import PictureSet, chained_digest
from protorect.embedding.pipeline import Block, check_lengths
from protorect.embedding.store import (
    FeatureStore,
    check_provenance,
    create_store,
    is_store,
    write_manifest,
)
from protorect.errors import DataError

_LOCK, _PICTURES, _STORE, _SHORTER = "lock", "pictures", "store", "shorter"
_PROGRESS, _NEW = "progress.json", ".new"
_BLOCKS = "blocks.npy"  # of an earlier version, in place of progress.json
_OWN_NAMES = {_LOCK, _PICTURES, _STORE, _SHORTER, _PROGRESS, "progress" + _NEW, _BLOCKS}
_SECONDS_BETWEEN_FLUSHES = 1.0  # the most work that is lost when the process is killed


class Done(NamedTuple):
    """The first pictures of a set, whose features are computed."""

    pictures: int = 0  # how many
    unreadable: tuple[tuple[int, str], ...] = ()  # positions and reasons
    digest: str = ""  # of their files, chained

    @property
    def rows(self) -> int:
        """Number of feature rows."""
        return self.pictures - len(self.unreadable)

    def and_block(self, block: Block) -> Self:
        """Add the pictures of the block that follows."""
        return self._replace(
            pictures=block.pictures.stop,
            unreadable=(*self.unreadable, *block.problems.items()),
            digest=chained_digest(block.digests, self.digest),
        )

    @classmethod
    def load(cls, path: Path, count: int) -> Self:
        """Read what was written for `count` pictures; nothing is done if that cannot be right."""
        expected = (range(count + 1), [(range(count), str)], str)
        try:
            pictures, unreadable, digest = read_json(path, expected)
        except DataError:
            return cls()
        positions = [position for position, _ in unreadable]
        if positions != sorted(set(positions)) or max(positions, default=-1) >= pictures:
            return cls()
        return cls(pictures, tuple((position, reason) for position, reason in unreadable), digest)


class PartialRows:
    """Feature rows that are written one block after the other, and how many pictures are done."""

    def __init__(self, features: Any, progress: Path) -> None:
        self._dim, self._start = features.shape[1], features.offset
        self._progress = progress
        self.done = self._flushed = Done.load(progress, len(features))
        # The array is written, not mapped: mapped pages would count as memory of the process.
        self._file = open(features.filename, "r+b")  # noqa: SIM115 - closed by `close`
        self._last_flush = time.monotonic()

    def append(self, block: Block) -> None:
        """Write the features of the block that follows."""
        if len(block.features):
            check_lengths(self._dim, block.features.shape[1])
        self._file.seek(self._start + 4 * self._dim * self.done.rows)
        self._file.write(block.features.astype("<f4").tobytes())
        self.done = self.done.and_block(block)
        if time.monotonic() - self._last_flush > _SECONDS_BETWEEN_FLUSHES:
            self.flush()

    def flush(self) -> None:
        """Write the rows to the disk, then how many pictures are done.

        In this order, after a kill or a loss of power a picture is either complete or computed
        again. If it fails, these pictures are never recorded as done, because the system reports
        lost data only once.
        """
        done, self.done = self.done, self._flushed
        self._file.flush()
        os.fsync(self._file.fileno())
        written = self._progress.with_suffix(_NEW)
        written.write_text(json.dumps(done) + "\n", encoding="utf-8")
        os.replace(written, self._progress)
        self.done = self._flushed = done
        self._last_flush = time.monotonic()

    def close(self) -> None:
        """Flush, and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()


class PartialExtraction:
    """The folder of the extraction that becomes `out`."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out.parent / f"{out.name}.partial"
        self.pictures = self.folder / _PICTURES
        self.store = self.folder / _STORE

    def open_rows(self, found: PictureSet, dim: int, provenance: dict[str, Any]) -> PartialRows:
        """The rows of a new store, or of the one that an interrupted extraction has left."""
        labels, names, groups = found.labels, found.class_names, found.groups
        if (self.store / MANIFEST).exists():
            stored = FeatureStore.open(self.store)
            check_provenance(self.folder, stored.provenance, provenance)
            features: Any = stored.features
            same = (
                features.shape == (len(labels), dim),
                stored.class_names == names,
                np.array_equal(stored.labels, labels),
                np.array_equal(stored.groups, groups),  # type: ignore[arg-type]  # None, too
            )
            if not all(same):
                raise DataError(f"{self.folder} is damaged. Remove it and extract again.")
        else:
            self.discard()
            features = create_store(self.store, dim, labels, names, provenance, groups)
        return PartialRows(features, self.folder / _PROGRESS)

    def finish(self, done: Done, provenance: dict[str, Any]) -> None:
        """Make the features appear at `out`, all at once, with their final provenance."""
        store = FeatureStore.open(self.store)
        features, names = store.features[: done.rows], store.class_names
        unreadable = [position for position, _ in done.unreadable]
        labels = np.delete(store.labels, unreadable)
        groups = None if store.groups is None else np.delete(store.groups, unreadable)
        if not is_store(self.out):
            texts = {"class_names": np.array(names), "manifest": np.array(json.dumps(provenance))}
            of_rows = {} if groups is None else {"groups": groups}
            save_arrays(self.out, features=features, labels=labels, **texts, **of_rows)
            self.discard()
            return
        finished = self.store
        if done.unreadable:
            finished = self.folder / _SHORTER
            dim = features.shape[1]
            create_store(finished, dim, labels, names, provenance, groups)[:] = features
        else:
            write_manifest(finished, features.shape, provenance)
        del store, features  # Windows does not move a folder with mapped files
        if self.out.is_dir():
            self.out.rmdir()  # an empty one, which Windows does not replace
        os.replace(finished, self.out)
        self.discard()

    def discard(self) -> None:
        """Remove what was done so far."""
        (self.folder / _PROGRESS).unlink(missing_ok=True)  # first: it says which rows are done
        shutil.rmtree(self.store, ignore_errors=True)


@contextmanager
def partial_extraction(out: Path) -> Iterator[PartialExtraction]:
    """Give the folder in which `out` is made, to one command at a time."""
    partial = PartialExtraction(out)
    folder = partial.folder
    with write_errors(out):
        names = set(os.listdir(folder)) if folder.is_dir() else set()
        if other := names - _OWN_NAMES:
            raise DataError(
                f"{folder} is needed for the unfinished extraction and holds something else "
                f"({min(other)}). Move it away or give another name."
            )
        with locked(folder / _LOCK, out):
            try:
                # What a killed command has left half-written.
                for unfinished in (partial.pictures, folder / _SHORTER):
                    shutil.rmtree(unfinished, ignore_errors=True)
                for path in partial.store.glob(".*"):
                    path.unlink()
                yield partial
            finally:
                shutil.rmtree(partial.pictures, ignore_errors=True)
                if not (partial.store / MANIFEST).exists():  # nothing to resume
                    shutil.rmtree(folder, ignore_errors=True)
