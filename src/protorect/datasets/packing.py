"""Pack one split: an array of its pictures, an array of its labels, its lines in the index."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from protorect._utils.arrays import create_array, write_rows
from protorect._utils.files import sha256_of_file
from protorect._utils.parallel import Mapper
from protorect._utils.progress import Progress
from protorect.datasets.catalogue import Dataset
from protorect.datasets.index import IndexLine
from protorect.datasets.layouts import PicturesByClass
from protorect.errors import DataError
from protorect.images.decode import decode
from protorect.images.stored import StoredPicture, UnreadableError

_CHUNK_PICTURES = 64
_CHUNK_BYTES = 2 * 2**20  # of pixels, unless one picture has more


class _Chunk(NamedTuple):
    """Pictures of one class that are packed together, and their place in the array."""

    label: int
    class_name: str
    pictures: list[StoredPicture]
    first_row: int  # if all pictures before it are readable


class _PackedChunk(NamedTuple):
    """The outcome of packing a chunk."""

    label: int
    lines: list[IndexLine]  # one per picture
    rows: slice  # of the array: the readable pictures in all rotations
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
    folder: Path,
    run: Mapper,
    write_line: Callable[[str, int | str, IndexLine], object],
    progress: Progress,
) -> PackingResult:
    """Write NAME.npy and NAME-labels.npy into `folder`, and one index line per picture.

    NAME-groups.npy is written, too, if the data set has groups of near-duplicates. The rows of a
    class are its readable pictures, then the same pictures in each rotation, which are classes of
    their own.
    """
    files = [folder / f"{name}{kind}.npy" for kind in ("", "-labels", "-groups")]
    images, labels, groups = files
    rotations, size = dataset.rotations, dataset.size
    total = sum(map(len, classes.values()))
    create_array(images, "uint8", (total * rotations, size, size, dataset.channels))
    chunk_labels: list[NDArray[np.int64]] = []
    row_groups: list[tuple[str, str]] = []  # class and group of each row
    chunk_rows: list[slice] = []
    unreadable: list[dict[str, str]] = []
    sums = np.zeros((2, dataset.channels), np.int64)
    done = rows = 0
    for chunk in run(partial(_pack_chunk, images, dataset), _chunks(classes, dataset)):
        row = rows
        for line in chunk.lines:
            write_line(name, "" if line.problem else row, line)
            row += not line.problem
        chunk_labels.append(np.repeat(rotations * chunk.label + np.arange(rotations), row - rows))
        readable = [line for line in chunk.lines if not line.problem]
        row_groups += [(line.class_name, line.group) for line in readable] * rotations
        chunk_rows.append(chunk.rows)
        unreadable += [
            {"path": line.path, "class": line.class_name, "reason": line.problem}
            for line in chunk.lines
            if line.problem
        ]
        sums += chunk.sums
        rows += chunk.rows.stop - chunk.rows.start
        done += len(chunk.lines)
        progress(done, total)
    problems = [(one["class"], f"{one['path']}: {one['reason']}") for one in unreadable]
    check_every_class({one: len(pictures) for one, pictures in classes.items()}, problems)
    if unreadable:
        _keep_rows(images, chunk_rows)
    np.save(labels, np.concatenate(chunk_labels), allow_pickle=False)
    if dataset.groups:
        numbers = {group: number for number, group in enumerate(dict.fromkeys(row_groups))}
        np.save(groups, np.array([numbers[group] for group in row_groups]), allow_pickle=False)
    class_names = list(classes)
    if rotations > 1:
        class_names = [f"{one}/rot{90 * turn:03d}" for one in classes for turn in range(rotations)]
    mean, std = _mean_and_std(sums, (total - len(unreadable)) * size * size)
    written = files if dataset.groups else files[:2]
    return PackingResult(_record(rows, class_names, written), unreadable, mean, std)


def _record(rows: int, class_names: list[str], files: list[Path]) -> dict[str, Any]:
    """Return the split's entry in the manifest, with the SHA-256 of its files and of all of it."""
    hashes = {path.name: sha256_of_file(path) for path in files}
    digest = hashlib.sha256("\n".join([*hashes.values(), *class_names]).encode()).hexdigest()
    return {"images": rows, "files": hashes, "digest": digest, "class_names": class_names}


def _chunks(classes: PicturesByClass, dataset: Dataset) -> Iterator[_Chunk]:
    most = max(1, min(_CHUNK_PICTURES, _CHUNK_BYTES // (dataset.size**2 * dataset.channels)))
    row = 0
    for label, (name, pictures) in enumerate(classes.items()):
        # The rotations follow all pictures of their class, so it has to be packed at once.
        step = most if dataset.rotations == 1 else len(pictures)
        for start in range(0, len(pictures), step):
            chunk = _Chunk(label, name, pictures[start : start + step], row)
            row += dataset.rotations * len(chunk.pictures)
            yield chunk


def _pack_chunk(images: Path, dataset: Dataset, chunk: _Chunk) -> _PackedChunk:
    """Write the pictures of a chunk to their rows of the array."""
    size = dataset.size
    lines: list[IndexLine] = []
    decoded: list[NDArray[np.uint8]] = []
    for picture in chunk.pictures:
        width = height = 0
        sha256 = problem = ""
        try:
            with picture.content() as data:
                sha256 = hashlib.sha256(data).hexdigest()
                image = decode(data, size, dataset.channels, picture.shape, picture.box)
            width, height = image.width, image.height
            decoded.append(image.pixels)
        except UnreadableError as error:
            problem = str(error)
        length = picture.unpacked_length or picture.length
        frame = (width, height, length)
        box = " ".join(f"{edge:g}" for edge in picture.box or ())
        group = group_of(picture, dataset)
        lines.append(IndexLine(chunk.class_name, picture.path, *frame, sha256, problem, box, group))
    pixels = np.array(decoded, np.uint8).reshape(-1, size, size, dataset.channels)
    if dataset.bright_on_dark:
        pixels = 255 - pixels
    sums = _sums(pixels) if decoded else np.zeros((2, dataset.channels), np.int64)
    rotated = [np.rot90(pixels, turn, axes=(1, 2)) for turn in range(dataset.rotations)]
    rows = slice(chunk.first_row, chunk.first_row + sum(map(len, rotated)))
    write_rows(images, rows.start, np.concatenate(rotated))
    return _PackedChunk(chunk.label, lines, rows, sums)


def group_of(picture: StoredPicture, dataset: Dataset) -> str:
    """What the near-duplicates of a picture share: part of its name, else all of it."""
    if not dataset.groups:
        return ""
    name = picture.path.split("/")[-1]
    found = re.match(dataset.groups, name)
    return found[1] if found else name


def _sums(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Sums of all values and of their squares, one column per channel.

    Pillow's histogram takes half as long as numpy's sums.
    """
    tall = pixels.reshape(-1, *pixels.shape[2:])
    image = Image.fromarray(tall[..., 0] if tall.shape[-1] == 1 else tall)
    counts = np.array(image.histogram(), np.int64).reshape(-1, 256)
    values = np.arange(256)
    return np.stack([counts @ values, counts @ values**2])


def check_every_class(sizes: Mapping[str, int], unreadable: Iterable[tuple[str, str]]) -> None:
    """Raise DataError if no picture of a class is readable.

    `sizes` are the numbers of pictures by class, `unreadable` has a class and a reason for each.
    """
    problems: dict[str, list[str]] = {}
    for name, problem in unreadable:
        problems.setdefault(name, []).append(problem)
    for name, of_class in problems.items():
        if len(of_class) == sizes[name]:
            raise DataError(
                f"class {name} has no readable picture ({len(of_class)} unreadable: "
                f"{'; '.join(of_class[:3])}). Add at least one .jpg or .png, or remove the folder."
            )


def _keep_rows(path: Path, kept: list[slice]) -> None:
    """Remove the rows between those that are kept; they were reserved for unreadable pictures."""
    array, shorter = np.load(path, mmap_mode="r"), path.with_suffix(".shorter.npy")
    count = sum(rows.stop - rows.start for rows in kept)
    create_array(shorter, "uint8", (count, *array.shape[1:]))
    row = 0
    for rows in kept:
        write_rows(shorter, row, array[rows])
        row += rows.stop - rows.start
    os.replace(shorter, path)


def _mean_and_std(sums: NDArray[np.int64], count: int) -> tuple[list[float], list[float]]:
    mean = sums[0] / count
    std = np.sqrt(np.maximum(sums[1] / count - mean**2, 0)) / 255
    # A constant channel has no scale; networks divide by the standard deviation.
    return (mean / 255).tolist(), np.where(std > 0, std, 1.0).tolist()
