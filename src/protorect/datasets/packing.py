"""Pack one split: an array of its pictures, an array of its labels, its lines in the index."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from protorect._utils.arrays import create_array
from protorect._utils.parallel import threads
from protorect._utils.progress import Progress
from protorect.datasets.catalogue import Dataset
from protorect.datasets.layouts import PicturesByClass
from protorect.errors import DataError
from protorect.images.decode import decode
from protorect.images.stored import StoredPicture, UnreadableError

COLUMNS = ("split", "row", "class", "path", "width", "height", "bytes", "sha256", "problem")
_CHUNK_PICTURES = 64
_CHUNK_BYTES = 2 * 2**20  # of pixels, unless one picture has more


class _Chunk(NamedTuple):
    """Pictures of one class."""

    label: int
    class_name: str
    pictures: list[StoredPicture]


class _ReadFile(NamedTuple):
    """A picture after reading its file; `error` is empty if that was possible."""

    picture: StoredPicture
    sha256: str
    width: int
    height: int
    error: str


class _PackedChunk(NamedTuple):
    """A chunk's files, the pixels (n, size, size, channels) of all rotations, and pixel sums."""

    chunk: _Chunk
    files: list[_ReadFile]
    pixels: NDArray[np.uint8]
    sums: NDArray[np.int64]


@dataclass(frozen=True)
class PackingResult:
    """The outcome of packing one split."""

    images: int  # number of rows
    class_names: list[str]  # one per label
    unreadable: list[dict[str, str]]  # path, class and reason of each unreadable picture
    mean: list[float]  # one per channel, on a scale of 0 to 1
    std: list[float]


def pack_split(
    name: str,
    classes: PicturesByClass,
    dataset: Dataset,
    size: int,
    folder: Path,
    workers: int,
    write_line: Callable[[tuple[Any, ...]], object],
    progress: Progress,
) -> PackingResult:
    """Write NAME.npy and NAME-labels.npy into `folder`, and one index line per picture.

    The rows of a class are its readable pictures, then the same pictures in each rotation, which
    are classes of their own.
    """
    total = sum(map(len, classes.values()))
    unreadable: list[dict[str, str]] = []
    done = 0
    with threads(workers) as run, _Rows(folder / f"{name}.npy", total, size, dataset) as rows:
        chunks = run(partial(_pack_chunk, size, dataset), _chunks(classes, size, dataset))
        for (label, class_name, pictures), files, pixels, sums in chunks:
            for line in _index_lines(name, rows.count, class_name, files):
                write_line(line)
            unreadable += [
                {"path": file.picture.path, "class": class_name, "reason": file.error}
                for file in files
                if file.error
            ]
            rows.append(pixels, label, sums)
            done += len(pictures)
            progress(done, total)
    _check_every_class(classes, unreadable)
    _shorten(folder / f"{name}.npy", rows.count)
    np.save(folder / f"{name}-labels.npy", rows.labels[: rows.count], allow_pickle=False)
    mean, std = _mean_and_std(rows.sums, (total - len(unreadable)) * size * size)
    class_names = _class_names(classes, dataset.rotations)
    return PackingResult(rows.count, class_names, unreadable, mean, std)


class _Rows:
    """The array of a split, filled from its start, with its labels and its pixel sums.

    It is written, not mapped, so that its pages do not count as memory of the process.
    """

    def __init__(self, path: Path, pictures: int, size: int, dataset: Dataset) -> None:
        self.rotations = dataset.rotations
        shape = (pictures * dataset.rotations, size, size, dataset.channels)
        length = create_array(path, "uint8", shape).nbytes
        self.file = path.open("r+b")
        self.file.seek(-length, os.SEEK_END)
        self.labels = np.empty(shape[0], np.int64)
        self.sums = np.zeros((2, dataset.channels), np.int64)
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def append(self, pixels: NDArray[np.uint8], label: int, sums: NDArray[np.int64]) -> None:
        """Add rows of a class, whose rotations have labels of their own."""
        self.file.write(pixels.data)
        rows = slice(self.count, self.count + len(pixels))
        labels = self.rotations * label + np.arange(self.rotations)
        self.labels[rows] = np.repeat(labels, len(pixels) // self.rotations)
        self.sums += sums
        self.count = rows.stop


def _shorten(path: Path, count: int) -> None:
    """Keep the first rows only; the others were reserved for unreadable pictures."""
    images = np.load(path, mmap_mode="r", allow_pickle=False)
    if count < len(images):
        shorter = path.with_suffix(".shorter.npy")
        np.save(shorter, images[:count], allow_pickle=False)
        del images  # Windows does not replace a mapped file
        os.replace(shorter, path)


def split_record(name: str, folder: Path, result: PackingResult) -> dict[str, Any]:
    """Return the split's entry in the manifest, with the SHA-256 of its files and of all of it."""
    files = {}
    for file_name in (f"{name}.npy", f"{name}-labels.npy"):
        with (folder / file_name).open("rb") as file:
            files[file_name] = hashlib.file_digest(file, "sha256").hexdigest()
    names = result.class_names
    digest = hashlib.sha256("\n".join([*files.values(), *names]).encode()).hexdigest()
    return {"images": result.images, "files": files, "digest": digest, "class_names": names}


def _chunks(classes: PicturesByClass, size: int, dataset: Dataset) -> Iterator[_Chunk]:
    length = max(1, min(_CHUNK_PICTURES, _CHUNK_BYTES // (size * size * dataset.channels)))
    for label, (name, pictures) in enumerate(classes.items()):
        # The rotations follow all pictures of their class, so it has to be packed at once.
        step = length if dataset.rotations == 1 else len(pictures)
        for start in range(0, len(pictures), step):
            yield _Chunk(label, name, pictures[start : start + step])


def _pack_chunk(size: int, dataset: Dataset, chunk: _Chunk) -> _PackedChunk:
    files: list[_ReadFile] = []
    decoded: list[NDArray[np.uint8]] = []
    for picture in chunk.pictures:
        sha256 = ""
        try:
            data = picture.read()
            sha256 = hashlib.sha256(data).hexdigest()
            image = decode(data, size, dataset.channels, picture.shape)
        except UnreadableError as error:
            files.append(_ReadFile(picture, sha256, 0, 0, str(error)))
        else:
            files.append(_ReadFile(picture, sha256, image.width, image.height, ""))
            decoded.append(image.pixels)
    pixels = np.array(decoded, np.uint8).reshape(-1, size, size, dataset.channels)
    if dataset.bright_on_dark:
        pixels = 255 - pixels
    sums = _sums(pixels) if decoded else np.zeros((2, dataset.channels), np.int64)
    rotated = [np.rot90(pixels, turn, axes=(1, 2)) for turn in range(dataset.rotations)]
    return _PackedChunk(chunk, files, np.concatenate(rotated), sums)


def _sums(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Sums of all values and of their squares, one column per channel.

    Pillow's histogram takes half as long as numpy's sums.
    """
    tall = pixels.reshape(-1, *pixels.shape[2:])
    image = Image.fromarray(tall[..., 0] if tall.shape[-1] == 1 else tall)
    counts = np.array(image.histogram(), np.int64).reshape(-1, 256)
    values = np.arange(256)
    return np.stack([counts @ values, counts @ values**2])


def _index_lines(
    split: str, row: int, class_name: str, files: list[_ReadFile]
) -> Iterator[tuple[Any, ...]]:
    for picture, sha256, width, height, error in files:
        length = picture.unpacked_length or picture.length
        described = (class_name, picture.path, width, height, length, sha256, error)
        yield (split, "" if error else row, *described)
        row += not error


def _class_names(classes: PicturesByClass, rotations: int) -> list[str]:
    if rotations == 1:
        return list(classes)
    return [f"{name}/rot{90 * turn:03d}" for name in classes for turn in range(rotations)]


def _check_every_class(classes: PicturesByClass, unreadable: list[dict[str, str]]) -> None:
    reasons: dict[str, list[str]] = {}
    for one in unreadable:
        reasons.setdefault(one["class"], []).append(f"{one['path']}: {one['reason']}")
    for name, of_class in reasons.items():
        if len(of_class) == len(classes[name]):
            raise DataError(
                f"class {name} has no readable picture ({len(of_class)} unreadable: "
                f"{'; '.join(of_class[:3])}). Add at least one .jpg or .png, or remove the folder."
            )


def _mean_and_std(sums: NDArray[np.int64], count: int) -> tuple[list[float], list[float]]:
    mean = sums[0] / count
    variance = np.maximum(sums[1] / count - mean**2, 0)
    return (mean / 255).tolist(), (np.sqrt(variance) / 255).tolist()
