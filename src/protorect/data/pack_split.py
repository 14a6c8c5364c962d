"""One split packed: its pictures, its labels, its lines in the index."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.data.catalogue import Dataset
from protorect.data.layouts.found import Pictures
from protorect.data.packing import PICTURES_IN_A_CHUNK, Chunk, Entry, Packed
from protorect.data.rows import RowFile, create_rows, keep_rows
from protorect.data.stored import StoredPicture
from protorect.errors import DataError

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


@dataclass
class SplitResult:
    """What the manifest says of a split.

    Parameters
    ----------
    record
        Number of images, class names, files with their SHA-256, digest.
    unreadable
        One dict a picture: path, class and reason.
    mean, std
        One a channel, on a scale of 0 to 1.
    """

    record: dict[str, Any]
    unreadable: list[dict[str, str]] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    std: list[float] = field(default_factory=list)


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
    result = SplitResult({})
    kept = np.ones(total, bool)
    sums = np.zeros((2, kind.channels), np.int64)
    numbers = _RowNumbers(kind.turns)
    done = 0
    for packed in run(_chunks(places, rows, kind)):
        sums += [packed.total, packed.squares]
        for entry in packed.entries:
            place = places[done]
            if entry.problem:
                kept[place.first :: place.stride][: kind.turns] = False
                result.unreadable.append(_unreadable(place, entry))
            write_line(_line(name, place, entry, numbers.next(place.class_name, entry)))
            done += 1
        progress(done)
    labels = np.repeat(
        np.arange(len(classes) * kind.turns),
        [len(pictures) for pictures in classes.values() for _ in range(kind.turns)],
    )
    _check_every_class(classes, result.unreadable)
    if not kept.all():
        keep_rows(rows, np.flatnonzero(kept))
    np.save(folder / f"{name}-labels.npy", labels[kept].astype(np.int64), allow_pickle=False)
    pixels = (len(places) - len(result.unreadable)) * size * size
    result.mean, result.std = _statistics(sums, pixels)
    result.record = _record(name, folder, int(kept.sum()), _class_names(classes, kind.turns))
    return result


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
    for start in range(0, len(places), PICTURES_IN_A_CHUNK):
        part = places[start : start + PICTURES_IN_A_CHUNK]
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


def _record(name: str, folder: Path, images: int, class_names: list[str]) -> dict[str, Any]:
    files = {file: _sha256(folder / file) for file in (f"{name}.npy", f"{name}-labels.npy")}
    digest = hashlib.sha256("\n".join([*files.values(), *class_names]).encode()).hexdigest()
    return {"images": images, "files": files, "digest": digest, "class_names": class_names}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
