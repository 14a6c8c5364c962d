"""Pack one split: an array of its pictures, an array of its labels, its lines in the index."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from protorect._utils.arrays import create_array
from protorect._utils.files import sha256_of_file
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


class _IndexLine(NamedTuple):
    """The index of one picture from the column `class` on; `problem` says why it is unreadable."""

    class_name: str
    path: str
    width: int
    height: int
    length: int
    sha256: str
    problem: str


class _Chunk(NamedTuple):
    """Packed pictures of one class."""

    label: int
    lines: list[_IndexLine]  # one per picture
    pixels: NDArray[np.uint8]  # (n, size, size, channels) of the readable ones in all rotations
    sums: NDArray[np.int64]  # (2, channels), of the pixels and of their squares, not rotated


@dataclass(frozen=True)
class PackingResult:
    """The outcome of packing one split."""

    record: dict[str, Any]  # the split's entry in the manifest
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
    images, labels = folder / f"{name}.npy", folder / f"{name}-labels.npy"
    rotations = dataset.rotations
    total = sum(map(len, classes.values()))
    length = create_array(images, "uint8", (total * rotations, size, size, dataset.channels)).nbytes
    chunk_labels: list[NDArray[np.int64]] = []
    unreadable: list[_IndexLine] = []
    sums = np.zeros((2, dataset.channels), np.int64)
    done = rows = 0
    # The array is written, not mapped: mapped pages would count as memory of the process.
    with threads(workers) as run, images.open("r+b") as file:
        file.seek(-length, os.SEEK_END)
        for chunk in run(partial(_pack_chunk, size, dataset), _chunks(classes, size, dataset)):
            row = rows
            for line in chunk.lines:
                write_line((name, "" if line.problem else row, *line))
                row += not line.problem
            file.write(chunk.pixels.data)
            chunk_labels.append(
                np.repeat(rotations * chunk.label + np.arange(rotations), row - rows)
            )
            unreadable += [line for line in chunk.lines if line.problem]
            sums += chunk.sums
            rows += len(chunk.pixels)
            done += len(chunk.lines)
            progress(done, total)
    _check_every_class(classes, unreadable)
    if unreadable:
        _shorten(images, rows)
    np.save(labels, np.concatenate(chunk_labels), allow_pickle=False)
    class_names = list(classes)
    if rotations > 1:
        class_names = [f"{one}/rot{90 * turn:03d}" for one in classes for turn in range(rotations)]
    problems = [{"path": u.path, "class": u.class_name, "reason": u.problem} for u in unreadable]
    mean, std = _mean_and_std(sums, (total - len(unreadable)) * size * size)
    return PackingResult(_record(rows, class_names, images, labels), problems, mean, std)


def _record(rows: int, class_names: list[str], images: Path, labels: Path) -> dict[str, Any]:
    """Return the split's entry in the manifest, with the SHA-256 of its files and of all of it."""
    hashes = {path.name: sha256_of_file(path) for path in (images, labels)}
    digest = hashlib.sha256("\n".join([*hashes.values(), *class_names]).encode()).hexdigest()
    return {"images": rows, "files": hashes, "digest": digest, "class_names": class_names}


def _chunks(
    classes: PicturesByClass, size: int, dataset: Dataset
) -> Iterator[tuple[int, str, list[StoredPicture]]]:
    """Yield label, class name and some pictures of the class."""
    most = max(1, min(_CHUNK_PICTURES, _CHUNK_BYTES // (size * size * dataset.channels)))
    for label, (name, pictures) in enumerate(classes.items()):
        # The rotations follow all pictures of their class, so it has to be packed at once.
        step = most if dataset.rotations == 1 else len(pictures)
        for start in range(0, len(pictures), step):
            yield label, name, pictures[start : start + step]


def _pack_chunk(size: int, dataset: Dataset, chunk: tuple[int, str, list[StoredPicture]]) -> _Chunk:
    label, class_name, pictures = chunk
    lines: list[_IndexLine] = []
    decoded: list[NDArray[np.uint8]] = []
    for picture in pictures:
        width = height = 0
        sha256 = problem = ""
        try:
            data = picture.read()
            sha256 = hashlib.sha256(data).hexdigest()
            image = decode(data, size, dataset.channels, picture.shape)
            width, height = image.width, image.height
            decoded.append(image.pixels)
        except UnreadableError as error:
            problem = str(error)
        length = picture.unpacked_length or picture.length
        lines.append(_IndexLine(class_name, picture.path, width, height, length, sha256, problem))
    pixels = np.array(decoded, np.uint8).reshape(-1, size, size, dataset.channels)
    if dataset.bright_on_dark:
        pixels = 255 - pixels
    sums = _sums(pixels) if decoded else np.zeros((2, dataset.channels), np.int64)
    rotated = [np.rot90(pixels, turn, axes=(1, 2)) for turn in range(dataset.rotations)]
    return _Chunk(label, lines, np.concatenate(rotated), sums)


def _sums(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Sums of all values and of their squares, one column per channel.

    Pillow's histogram takes half as long as numpy's sums.
    """
    tall = pixels.reshape(-1, *pixels.shape[2:])
    image = Image.fromarray(tall[..., 0] if tall.shape[-1] == 1 else tall)
    counts = np.array(image.histogram(), np.int64).reshape(-1, 256)
    values = np.arange(256)
    return np.stack([counts @ values, counts @ values**2])


def _check_every_class(classes: PicturesByClass, unreadable: list[_IndexLine]) -> None:
    """Raise DataError if no picture of a class is readable."""
    problems: dict[str, list[str]] = {}
    for line in unreadable:
        problems.setdefault(line.class_name, []).append(f"{line.path}: {line.problem}")
    for name, of_class in problems.items():
        if len(of_class) == len(classes[name]):
            raise DataError(
                f"class {name} has no readable picture ({len(of_class)} unreadable: "
                f"{'; '.join(of_class[:3])}). Add at least one .jpg or .png, or remove the folder."
            )


def _shorten(path: Path, count: int) -> None:
    """Keep the first rows only; the others were reserved for unreadable pictures."""
    shorter = path.with_suffix(".shorter.npy")
    np.save(shorter, np.load(path, mmap_mode="r")[:count], allow_pickle=False)
    os.replace(shorter, path)


def _mean_and_std(sums: NDArray[np.int64], count: int) -> tuple[list[float], list[float]]:
    mean = sums[0] / count
    variance = np.maximum(sums[1] / count - mean**2, 0)
    return (mean / 255).tolist(), (np.sqrt(variance) / 255).tolist()
