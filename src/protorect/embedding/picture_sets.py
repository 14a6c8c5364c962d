"""Labeled pictures to embed: one split of a packed data set, or class folders."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protorect._utils.parallel import processors, threads
from protorect.datasets.catalogue import find_dataset
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import find_splits
from protorect.embedding.cache import file_status
from protorect.embedding.pipeline import PicturesToEmbed
from protorect.images.decode import decode
from protorect.images.stored import StoredPicture, UnreadableError

_ALL_TEST = (0.0, 0.0, 1.0)  # fractions of the classes in train, val and test
_SAMPLE, _SAMPLE_SIZE = 256, 32  # pictures of class folders whose mean is computed, and their side


@dataclass(frozen=True, eq=False)
class PictureSet:
    """Pictures with their labels."""

    pictures: PicturesToEmbed
    labels: NDArray[np.int64]  # (n,), indices into `class_names`, ascending
    class_names: tuple[str, ...]
    origin: dict[str, str]  # name, split and a digest: "pictures" if packed, else "files"
    mean: Callable[[], Sequence[float]]  # of each channel, on a scale of 0 to 1
    unreadable: tuple[str, ...] = ()  # pictures that could not be packed, with the reason
    groups: NDArray[np.int64] | None = None  # (n,), equal for near-duplicates

    def digest(self, of_files: str = "") -> str:
        """SHA-256 of pictures, labels and class names.

        `of_files` is the chained digest of all files; without it, they are read.
        """
        if isinstance(self.pictures, np.ndarray):
            return self.origin["pictures"]
        if not of_files:
            with threads(processors()) as map_threads:
                of_files = chained_digest(map_threads(_digest, self.pictures))
        counts = np.bincount(self.labels).tolist()
        return _sha256([of_files, *self.class_names, *map(str, counts)])


def open_packed(folder: Path, split: str) -> PictureSet:
    """One split of a packed data set."""
    data = PackedDataset.open(folder)
    chosen = data.split(split)
    return PictureSet(
        chosen.images,
        chosen.labels,
        chosen.class_names,
        packed_origin(data, split),
        lambda: data.mean,
        tuple(f"{one['path']}: {one['reason']}" for one in data.manifest["unreadable"]),
        chosen.groups,
    )


def packed_origin(data: PackedDataset, split: str) -> dict[str, str]:
    """The pictures of a split, as a feature file records them."""
    origin = {"data": data.name, "split": split, "pictures": data.split(split).digest}
    crop = data.manifest.get("crop")
    return origin if crop is None else origin | {"crop": crop}


def find_folders(root: Path, scratch: Path) -> PictureSet:
    """All pictures of a folder or archive of class folders, which are not read yet.

    Until their contents are known, names, sizes and times of the last change identify them.
    """
    scratch.mkdir()
    splits, _ = find_splits(find_dataset("folder"), root, scratch, _ALL_TEST, seed=0)
    classes = splits["test"]
    pictures = [picture for of_class in classes.values() for picture in of_class]
    labels = np.repeat(np.arange(len(classes)), [len(of_class) for of_class in classes.values()])
    archive = None if root.is_dir() else file_status(str(root))
    files = (f"{one.path} {one.offset} {archive or file_status(one.file)}" for one in pictures)
    origin = {"data": "folder", "split": "test", "files": _sha256(files)}
    return PictureSet(pictures, labels, tuple(classes), origin, partial(_sampled_mean, pictures))


def chained_digest(digests: Iterable[bytes], before: str = "") -> str:
    """One digest for those of files, which follow files whose common digest was `before`."""
    chained = before
    for digest in digests:
        chained = sha256(chained.encode() + digest).hexdigest()
    return chained


def _digest(picture: StoredPicture) -> bytes:
    """SHA-256 of a picture's file, b"" if that cannot be read."""
    try:
        with picture.content() as data:
            return sha256(data).digest()
    except UnreadableError:
        return b""


def _sampled_mean(pictures: Sequence[StoredPicture]) -> list[float]:
    """Mean brightness of pictures at equal distances, so that few are decoded twice."""
    means = []
    for picture in pictures[:: -(-len(pictures) // _SAMPLE)]:
        try:
            with picture.content() as data:
                means.append(decode(data, _SAMPLE_SIZE, 1).pixels.mean() / 255)
        except UnreadableError:
            continue
    return [float(np.mean(means))] if means else [0.0]


def _sha256(lines: Iterable[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()
