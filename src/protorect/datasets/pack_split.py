"""One split packed: its pictures, its labels, its lines in the index."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect._utils.npy_rows import RowFile, create_rows, keep_rows
from protorect.datasets.catalogue import Dataset
from protorect.datasets.layouts.found import Pictures
from protorect.datasets.packing import Chunk, Entry, Packed, pictures_in_a_chunk
from protorect.errors import DataError
from protorect.images.stored import StoredPicture

COLUMNS = ("split", "row", "class", "path", "width", "height", "bytes", "sha256", "problem")

Run = Callable[[Iterable[Chunk]], Iterator[Packed]]
WriteLine = Callable[[tuple[Any, ...]], object]


@dataclass(frozen=True)
class Place:
    """A picture, its class, and where its turns go: rows first, first + stride, ..."""

    picture: StoredPicture
    class_name: str
    first: int
    stride: int


@dataclass(frozen=True)
class SplitResult:
    """What became of a split.

    Parameters
    ----------
    images
        Number of rows.
    class_names
        One a label.
    unreadable
        One dict a picture: path, class and reason.
    mean, std
        One a channel, on a scale of 0 to 1.
    """

    images: int
    class_names: list[str]
    unreadable: list[dict[str, str]]
    mean: list[float]
    std: list[float]


def pack_split(
    name: str,
    classes: Pictures,
    kind: Dataset,
    size: int,
    folder: Path,
    run: Run,
    write_line: WriteLine,
    progress: Callable[[int], None],
) -> SplitResult:
    """Pack one split into `folder`; `progress` hears how many pictures are done."""
    places = _places(classes, kind.turns)
    total = len(places) * kind.turns
    rows = create_rows(folder / f"{name}.npy", total, (size, size, kind.channels))
    unreadable: list[dict[str, str]] = []
    kept = np.ones(total, bool)
    sums = np.zeros((2, kind.channels), np.int64)
    numbers = _RowNumbers(kind.turns)
    done = 0
    for packed in run(_chunks(places, rows, kind)):
        sums += packed.sums
        for entry in packed.entries:
            place = places[done]
            if entry.problem:
                kept[place.first :: place.stride][: kind.turns] = False
                unreadable.append(_unreadable(place, entry))
            write_line(_line(name, place, entry, numbers.next(place.class_name, entry)))
            done += 1
        progress(done)
    labels = np.repeat(
        np.arange(len(classes) * kind.turns),
        [len(pictures) for pictures in classes.values() for _ in range(kind.turns)],
    )
    _check_every_class(classes, unreadable)
    if not kept.all():
        keep_rows(rows, np.flatnonzero(kept))
    np.save(folder / f"{name}-labels.npy", labels[kept].astype(np.int64), allow_pickle=False)
    pixels = (len(places) - len(unreadable)) * size * size
    class_names = _class_names(classes, kind.turns)
    return SplitResult(int(kept.sum()), class_names, unreadable, *_statistics(sums, pixels))


def split_record(name: str, folder: Path, result: SplitResult) -> dict[str, Any]:
    """What the manifest says of a split: its files with their SHA-256, and a digest of all."""
    files = {file: _sha256(folder / file) for file in (f"{name}.npy", f"{name}-labels.npy")}
    names = result.class_names
    digest = hashlib.sha256("\n".join([*files.values(), *names]).encode()).hexdigest()
    return {"images": result.images, "files": files, "digest": digest, "class_names": names}


def _places(classes: Pictures, turns: int) -> list[Place]:
    """Pictures of a class side by side, its turns one after the other."""
    places, start = [], 0
    for name, pictures in classes.items():
        places += [
            Place(picture, name, start + position, len(pictures))
            for position, picture in enumerate(pictures)
        ]
        start += turns * len(pictures)
    return places


def _chunks(places: list[Place], rows: RowFile, kind: Dataset) -> Iterator[Chunk]:
    length = pictures_in_a_chunk(rows.row_bytes)
    for start in range(0, len(places), length):
        part = places[start : start + length]
        yield Chunk(
            tuple((place.picture, place.first) for place in part),
            tuple(place.stride for place in part),
            rows,
            kind.turns,
            kind.ink_high,
        )


def _class_names(classes: Pictures, turns: int) -> list[str]:
    if turns == 1:
        return list(classes)
    return [f"{name}/rot{90 * turn:03d}" for name in classes for turn in range(turns)]


class _RowNumbers:
    """The row of each picture's first turn once unreadable ones are gone."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._class = ""
        self._start = 0
        self._in_class = 0

    def next(self, class_name: str, entry: Entry) -> int | str:
        if class_name != self._class:
            self._start += self._turns * self._in_class
            self._class, self._in_class = class_name, 0
        if entry.problem:
            return ""
        self._in_class += 1
        return self._start + self._in_class - 1


def _line(split: str, place: Place, entry: Entry, row: int | str) -> tuple[Any, ...]:
    picture = place.picture
    length = picture.unpacked_length or picture.length
    shape = (entry.width, entry.height, length, entry.sha256)
    return (split, row, place.class_name, picture.path, *shape, entry.problem)


def _unreadable(place: Place, entry: Entry) -> dict[str, str]:
    return {"path": place.picture.path, "class": place.class_name, "reason": entry.problem}


def _check_every_class(classes: Pictures, unreadable: list[dict[str, str]]) -> None:
    bad: dict[str, list[str]] = {}
    for one in unreadable:
        bad.setdefault(one["class"], []).append(f"{one['path']}: {one['reason']}")
    for name, problems in bad.items():
        if len(problems) == len(classes[name]):
            raise DataError(
                f"class {name} has no readable picture ({len(problems)} unreadable: "
                f"{'; '.join(problems[:3])}). Add at least one .jpg or .png, or remove the folder."
            )


def _statistics(sums: NDArray[np.int64], pixels: int) -> tuple[list[float], list[float]]:
    mean = sums[0] / pixels
    variance = np.maximum(sums[1] / pixels - mean**2, 0)
    return (mean / 255).tolist(), (np.sqrt(variance) / 255).tolist()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
