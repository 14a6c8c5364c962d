"""Packed data sets: one memory-mapped array of pictures per split, and a manifest."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from protorect._utils.arrays import map_array
from protorect._utils.documents import COUNT
from protorect._utils.manifest import MANIFEST, FolderFormat, read_manifest
from protorect._utils.parameters import LARGEST_SIZE
from protorect.datasets.boxes import BEFORE, CROPS
from protorect.datasets.splits import SPLITS
from protorect.errors import damaged, unknown_name

FORMAT = "protorect-packed"
VERSION = 1
_REMEDY = "Prepare it again with `protorect prepare`."
_PACKED = FolderFormat(
    "packed data set", FORMAT, VERSION, "Make one with `protorect prepare`.", _REMEDY
)

_MANIFEST = {
    "dataset": str,
    "size": range(1, LARGEST_SIZE + 1),
    "channels": {1, 3},
    "mean": [float],
    "std": [float],
    "flip": bool,
    "crop_padding": range(LARGEST_SIZE + 1),
    "splits": {str: {"images": COUNT, "class_names": [str], "digest": str, "files?": dict}},
    "unreadable": [{"path": str, "reason": str}],
    "left_out": [str],
    "remarks?": [str],
    "crop?": {*CROPS, BEFORE},
}


@dataclass(frozen=True, eq=False)
class PackedSplit:
    """The pictures of one split; the rows of a class are contiguous."""

    images: NDArray[np.uint8]  # (n, size, size, channels), memory-mapped
    labels: NDArray[np.int64]  # (n,), indices into `class_names`
    class_names: tuple[str, ...]  # sorted; no name is in two splits
    digest: str  # SHA-256 of pictures, labels and class names, and groups if there are any
    groups: NDArray[np.int64] | None = None  # (n,), equal for near-duplicates of a class


@dataclass(frozen=True)
class PackedDataset:
    """A folder written by `protorect prepare`."""

    path: Path
    name: str  # of the data set
    size: int  # side of every picture in pixels
    channels: int
    mean: tuple[float, ...]  # one per channel, of the training pictures, on a scale of 0 to 1
    std: tuple[float, ...]
    flip: bool  # whether a mirrored picture still belongs to its class
    crop_padding: int  # pixels added on each side of a picture before a random crop
    manifest: dict[str, Any]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a packed folder after checking that its arrays fit the manifest."""
        path = Path(path)
        manifest = read_manifest(path, _PACKED, _MANIFEST)
        channels = manifest["channels"]
        mean, std = (tuple(map(float, manifest[name])) for name in ("mean", "std"))
        if not len(mean) == len(std) == channels:
            reason = f"mean and std are not {channels} numbers each"
            raise damaged(path / MANIFEST, reason, _REMEDY)
        if unknown := set(manifest["splits"]) - set(SPLITS):
            raise damaged(path / MANIFEST, f"it has the split {min(unknown)!r}", _REMEDY)
        size, flip, padding = (manifest[name] for name in ("size", "flip", "crop_padding"))
        opened = cls(path, manifest["dataset"], size, channels, mean, std, flip, padding, manifest)
        for split in opened.splits:
            opened.split(split)
        return opened

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits with pictures, in the order train, val, test."""
        return tuple(split for split in SPLITS if split in self.manifest["splits"])

    def split(self, name: str) -> PackedSplit:
        """Return the pictures of train, val or test."""
        if name not in self.splits:
            raise unknown_name(f"split of {self.path}", name, self.splits)
        record = self.manifest["splits"][name]
        classes, count = tuple(record["class_names"]), record["images"]
        shape = (count, self.size, self.size, self.channels)
        images = map_array(self.path / f"{name}.npy", "uint8", shape, _REMEDY)
        labels = np.array(map_array(self.path / f"{name}-labels.npy", "int64", (count,), _REMEDY))
        used = np.unique(labels)
        if np.any(np.diff(labels) < 0) or not np.array_equal(used, np.arange(len(classes))):
            reason = "its labels do not fit its classes"
            raise damaged(self.path / f"{name}-labels.npy", reason, _REMEDY)
        groups, file = None, f"{name}-groups.npy"
        if file in record.get("files", {}):
            groups = np.array(map_array(self.path / file, "int64", (count,), _REMEDY))
        return PackedSplit(images, labels, classes, record["digest"], groups)
