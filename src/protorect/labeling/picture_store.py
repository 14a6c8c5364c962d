"""Features of a project's pictures, in the order in which they were computed.

    features.json    format, version, network, and the length of the features
    features.f32     (n, dim) float32, zeros for a picture that could not be read
    index.bin        n records: which picture, its content and size, or why it could not be read

Both files only grow: the features of a block are written before its records in the index, so that
whatever was interrupted, the first records of the index are complete. If a picture was changed and
embedded again, the later record counts.
"""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protorect._utils.documents import read_json
from protorect._utils.files import open_file, write_errors, write_text
from protorect.errors import damaged

_MANIFEST, _FEATURES, _INDEX = "features.json", "features.f32", "index.bin"
_FORMAT, _VERSION = "protorect-labeling-features", 1
_REMEDY = "Remove this folder; the features are then computed again."
_LONGEST_REASON = 160  # bytes
RECORD = np.dtype(
    [
        ("id", "<i8"),
        ("content", "u1", 32),
        ("width", "<i4"),
        ("height", "<i4"),
        ("size", "<i8"),
        ("changed", "<i8"),
        ("reason", f"S{_LONGEST_REASON}"),
    ]
)


class Stored(NamedTuple):
    """What is known of one picture after it was read."""

    id: int
    content: bytes  # SHA-256 of its file, b"" if that could not be read
    width: int
    height: int
    size: int  # of the file in bytes when it was read
    changed: int  # its modification time
    reason: str  # why it could not be read; "" if it could


class PictureStore:
    """The features of a project's pictures by one network."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.network, self.dim = folder, "", 0
        self._waiting: list[Stored] = []  # unreadable ones, before the length of features is known
        self._records: NDArray[Any] = np.empty(0, RECORD)  # with room for more
        self._count = 0
        if (folder / _MANIFEST).exists():
            self._load()

    def use_network(self, digest: str) -> bool:
        """Keep features of the network of this digest; whether those of another were removed."""
        others = bool(self.network) and self.network != digest
        if others:
            for name in (_MANIFEST, _INDEX, _FEATURES):  # the manifest first
                (self.folder / name).unlink(missing_ok=True)
            self.dim, self._records, self._count = 0, np.empty(0, RECORD), 0
        self.network = digest
        return others

    def __len__(self) -> int:
        return self._count

    @property
    def index(self) -> NDArray[Any]:
        """The records."""
        return self._records[: self._count]

    def check_ids(self, pictures: int) -> None:
        """Raise DataError if a record is of none of so many pictures."""
        ids = self.index["id"]
        if len(ids) and not 0 <= ids.min() <= ids.max() < pictures:
            raise damaged(self.folder / _INDEX, "it names a picture that is not listed", _REMEDY)

    def check_finite(self, rows: NDArray[np.float32]) -> None:
        """Raise DataError if rows of features have a value that is not finite."""
        if not np.isfinite(rows).all():
            raise damaged(self.folder / _FEATURES, "it has values that are not finite", _REMEDY)

    def check(self, count: int) -> int:
        """A checksum of the first records, by which a copy of their features is recognized."""
        return zlib.crc32(np.ascontiguousarray(self.index[:count]).tobytes())

    def append(self, pictures: Sequence[Stored], features: NDArray[np.float32]) -> None:
        """Add pictures; `features` (n, dim) are those of the readable ones, in their order."""
        pictures = [*self._waiting, *pictures]
        if not self.dim and not len(features):
            self._waiting = pictures
            return
        self._waiting = []
        if not self.dim:
            self._create(features.shape[1])
        if len(features) and features.shape[1] != self.dim:
            given = features.shape[1]
            what = f"its features have {self.dim} numbers, those of the network {given}"
            raise damaged(self.folder, what, _REMEDY)
        rows = np.zeros((len(pictures), self.dim), np.float32)
        if len(features):  # else none could be read
            rows[[not one.reason for one in pictures]] = features
        records = np.zeros(len(pictures), RECORD)
        for place, one in enumerate(pictures):
            content = np.frombuffer(one.content.ljust(32, b"\0"), np.uint8)
            reason = one.reason.encode()[:_LONGEST_REASON]
            records[place] = (one.id, content, *one[2:-1], reason)
        _append(self.folder / _FEATURES, len(self) * rows[0].nbytes, rows)
        _append(self.folder / _INDEX, len(self) * RECORD.itemsize, records)
        end = self._count + len(records)
        if end > len(self._records):
            self._records = np.concatenate([self.index, np.empty(end, RECORD)])
        self._records[self._count : end] = records
        self._count = end

    def features(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """The features (n, dim) of records, by their positions."""
        rows = np.empty((len(positions), self.dim), np.float32)
        if len(positions):
            # Read, not mapped: mapped pages would count as memory of the process.
            with open_file(self.folder / _FEATURES) as file:
                for place, position in enumerate(positions.tolist()):
                    file.seek(position * self.dim * 4)
                    self._read(file, rows[place])
        return rows

    def blocks(self, count: int, size: int = 4096) -> Iterator[NDArray[np.float32]]:
        """The features of the first records, (size, dim) at a time."""
        with open_file(self.folder / _FEATURES) as file:
            for start in range(0, count, size):
                rows = np.empty((min(size, count - start), self.dim), np.float32)
                self._read(file, rows)
                yield rows

    def _read(self, file: BinaryIO, rows: NDArray[np.float32]) -> None:
        if file.readinto(rows.data) != rows.nbytes:  # type: ignore[attr-defined]
            raise damaged(self.folder / _FEATURES, "it has become shorter", _REMEDY)

    def _create(self, dim: int) -> None:
        self.dim = dim
        self.folder.mkdir(parents=True, exist_ok=True)
        head = {"format": _FORMAT, "version": _VERSION, "network": self.network, "dim": dim}
        write_text(self.folder / _MANIFEST, json.dumps(head) + "\n")

    def _load(self) -> None:
        expected = {"format": _FORMAT, "version": _VERSION, "network": str, "dim": range(1, 2**20)}
        head = read_json(self.folder / _MANIFEST, expected, _REMEDY)
        self.network, self.dim = head["network"], head["dim"]
        index, features = self.folder / _INDEX, self.folder / _FEATURES
        if not index.exists() or not features.exists():
            return
        with open_file(index) as file:
            lengths = index.stat().st_size // RECORD.itemsize, features.stat().st_size // 4
            count = min(lengths[0], lengths[1] // self.dim)
            records = file.read(count * RECORD.itemsize)
        self._records = np.frombuffer(bytearray(records), RECORD)
        self._count = len(self._records)


def _append(path: Path, position: int, rows: NDArray[Any]) -> None:
    """Write rows at a position, and remove them if that fails."""
    with write_errors(path), open(path, "r+b" if path.exists() else "w+b", buffering=0) as file:
        try:
            file.seek(position)
            data = memoryview(rows.tobytes())
            while data:
                data = data[file.write(data) :]
            file.truncate()
        except OSError:
            os.ftruncate(file.fileno(), position)
            raise
