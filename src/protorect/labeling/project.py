"""The folder of a labeling project.

    project.json     format, where the pictures are, network, method, thresholds
    pictures.json    the list of pictures: the place in it is the number of a picture
    journal.jsonl    the acts; all labels are made from it
    features/        features of the pictures by content
    rows.npz         the same in their leading principal components; made again if missing
    changes.jsonl    what each act changed, for the page; nothing depends on it
    exports/         what was exported from the page

In a folder that `protorect sort` made, all this is in its subfolder .protorect/labeling.
"""

import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from protorect._utils.documents import COUNT, read_json
from protorect._utils.files import (
    LARGEST_TEXT,
    file_errors,
    names_in,
    open_file,
    remove_temporary_files,
    sync_folders,
    write_text,
)
from protorect._utils.locks import locked
from protorect._utils.text import printable
from protorect.embedding.cache import file_status
from protorect.errors import DataError, naming
from protorect.images.find import FoundPictures, find_pictures
from protorect.images.stored import StoredPicture
from protorect.labeling.act_journal import ActJournal
from protorect.labeling.placements import OWN, journal_files
from protorect.methods import method as checked_method
from protorect.uncertainty.thresholds import Thresholds

FORMAT, VERSION = "protorect-labeling", 1
PROJECT, PICTURES, JOURNAL, WRITER = "project.json", "pictures.json", "journal.jsonl", "writer.json"
FEATURES, ROWS, CHANGES, EXPORTS, LOCK = "features", "rows.npz", "changes.jsonl", "exports", "lock"
_REMEDY = "Restore it from a copy."
_SETTINGS = {
    "format": FORMAT,
    "version": COUNT,
    "project": str,
    "sources": [Path],
    "network": str,
    "method": {str, None},
    "unknown": float,
    "unsure": float,
}
_NANOSECONDS = range(-(2**63), 2**63)
_COLUMNS = {
    "version": COUNT,
    "name": [Path],
    "file": [Path],
    "size": [COUNT],
    "changed": [_NANOSECONDS],
}
_COLUMNS |= {"gone": [COUNT]}  # the numbers of the pictures that vanished


class Listed(NamedTuple):
    """One picture of the list."""

    name: str  # as it is shown
    file: str
    size: int  # in bytes, when it was last seen
    changed: int  # modification time in nanoseconds
    gone: bool = False

    def stored(self) -> StoredPicture:
        """The picture, to be read."""
        return StoredPicture(printable(self.name), self.file, self.size)


@dataclass(frozen=True)
class Seen:
    """How a list differs from what is found now."""

    pictures: tuple[Listed, ...]
    added: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    vanished: tuple[int, ...] = ()

    def sentences(self) -> list[str]:
        """What a person should know of it."""
        counts = (
            (self.added, "was", "were", "added"),
            (self.changed, "has", "have", "changed"),
            (self.vanished, "is", "are", "gone"),
        )
        return [
            f"1 picture {one} {what}" if len(ids) == 1 else f"{len(ids)} pictures {several} {what}"
            for ids, one, several, what in counts
            if ids
        ]


@dataclass(frozen=True)
class Settings:
    """What a project was made with."""

    project: str  # a random name, by which the journal belongs to the folder
    sources: tuple[str, ...]
    network: str
    method: str | None
    unknown: float
    unsure: float

    @property
    def thresholds(self) -> Thresholds:
        """When a picture is set aside."""
        return Thresholds(unknown=self.unknown, unsure=self.unsure)


class Project:
    """An open project folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, home(root)
        self.settings = _read_settings(self.home / PROJECT)
        self.pictures = _read_list(self.home / PICTURES)

    @classmethod
    def create(cls, root: Path, settings: Settings, pictures: Sequence[Listed]) -> Self:
        """Write a new project without acts; its settings, which are written last, complete it."""
        folder = home(root)
        with file_errors("make", folder):
            folder.mkdir(parents=True, exist_ok=True)
            if _has_acts(folder / JOURNAL):
                raise DataError(
                    f"{printable(folder / JOURNAL)} has labels, but {PROJECT} is missing; restore "
                    "it from a copy."
                )
            (folder / JOURNAL).unlink(missing_ok=True)  # of a creation that was interrupted
        write_list(folder, pictures)
        ActJournal.create(folder / JOURNAL, settings.project).close()
        write_settings(folder, settings)
        sync_folders([folder, root])
        return cls(root)

    def look_again(self, sources: Iterable[str]) -> Seen:
        """Compare the list with the pictures that are there now."""
        found = {one.file: one for one in find_all(sources, self.root)}
        pictures, changed, vanished = list(self.pictures), [], []
        for number, one in enumerate(pictures):
            now = found.pop(one.file, None) or _still_there(one)
            if now == one:
                continue  # as nearly all are
            if now is None:
                pictures[number] = one._replace(gone=True)
                if not one.gone:
                    vanished.append(number)
            elif (now.size, now.changed) != (one.size, one.changed) or one.gone:
                pictures[number] = now._replace(name=one.name)
                changed.append(number)
        added = range(len(pictures), len(pictures) + len(found))
        return Seen((*pictures, *found.values()), tuple(added), tuple(changed), tuple(vanished))


def home(root: Path) -> Path:
    """The folder with the files of a project."""
    inside = root / OWN / "labeling"
    return inside if inside.exists() or journal_files(root) else root


def is_project(root: Path) -> bool:
    """Whether a folder is a labeling project."""
    return (home(root) / PROJECT).is_file()


def is_unfinished(root: Path) -> bool:
    """Whether a folder holds only what an interrupted creation of a project has left."""
    remove_temporary_files(root)
    own = {LOCK, WRITER, PICTURES, JOURNAL}
    return set(names_in(root)) <= own and not _has_acts(root / JOURNAL)


def _has_acts(journal: Path) -> bool:
    if not journal.exists():
        return False
    with open_file(journal) as file:
        file.readline(LARGEST_TEXT)  # the head
        return bool(file.read(1))


def find_all(sources: Iterable[str], root: Path, missing_ok: bool = True) -> list[Listed]:
    """List the pictures of all sources, without those in the project's own folder.

    A source that is gone is an error unless `missing_ok`.
    """
    pictures: dict[str, StoredPicture] = {}
    for source in sources:
        with suppress(DataError) if missing_ok else nullcontext():
            pictures |= {one.file: one for one in find_pictures(source).pictures}
    if not journal_files(root):  # exports, for example; the pictures of a sorted folder are there
        own = os.path.abspath(root) + os.sep
        pictures = {file: one for file, one in pictures.items() if not file.startswith(own)}
    return listed(FoundPictures(tuple(pictures.values())))


def listed(found: FoundPictures) -> list[Listed]:
    """Entries of the list for pictures."""
    return [Listed(one.path, one.file, one.length, one.changed) for one in found.pictures]


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """Be the only writer of a project; DataError says who else is."""
    folder = home(root)
    with file_errors("make", folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        # That of a sorted folder: it is sorted, undone or labeled by one command at a time.
        lock = locked(root / OWN / LOCK if journal_files(root) else folder / LOCK, root)
        lock.__enter__()
    except DataError as error:
        if who := _writer(folder):
            raise DataError(f"{printable(root)} is open already{who}.") from None
        raise error from None
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / WRITER).unlink()
        lock.__exit__(None, None, None)


def write_writer(folder: Path, address: str) -> None:
    """Leave word who writes to the project, for a second one."""
    word = {"process": os.getpid(), "host": platform.node(), "address": address}
    write_text(folder / WRITER, json.dumps(word) + "\n")


def write_settings(folder: Path, settings: Settings) -> None:
    """Write the settings of a project."""
    head = {"format": FORMAT, "version": VERSION}
    write_text(folder / PROJECT, json.dumps(head | settings.__dict__, indent=1) + "\n")


def write_list(folder: Path, pictures: Sequence[Listed]) -> None:
    """Write the list of pictures, completely or not at all."""
    names = ("name", "file", "size", "changed")
    columns: dict[str, Any] = {name: [getattr(one, name) for one in pictures] for name in names}
    columns["gone"] = [number for number, one in enumerate(pictures) if one.gone]
    write_text(folder / PICTURES, json.dumps({"version": VERSION, **columns}) + "\n")


def _writer(folder: Path) -> str:
    """Who writes to a project, as the end of a sentence; empty if that is not known."""
    try:
        word = read_json(folder / WRITER, {"process": COUNT, "host": str, "address": str})
    except DataError:
        return ""
    who = f" in process {word['process']} on {word['host']}"
    return f"{who}, at {word['address']}" if word["address"] else f"{who}; close it there first"


def _read_settings(path: Path) -> Settings:
    if not path.is_file():
        raise DataError(
            f"{printable(path.parent)} is not a labeling project; to make one, give the pictures "
            "and a new folder."
        )
    head = read_json(path, {"format": FORMAT, "version": COUNT}, _REMEDY)
    if head["version"] > VERSION:
        raise DataError(
            f"{printable(path.parent)} is a project of a newer protorect (its version is "
            f"{head['version']}, this program reads {VERSION}); install that."
        )
    stored = read_json(path, _SETTINGS, _REMEDY)
    fields = {name: stored[name] for name in Settings.__dataclass_fields__}
    settings = Settings(**fields | {"sources": tuple(stored["sources"])})
    with naming(printable(path)):
        _ = settings.thresholds  # an error if they are none
        if settings.method is not None:
            checked_method(settings.method)
    return settings


def _read_list(path: Path) -> tuple[Listed, ...]:
    stored = read_json(path, _COLUMNS, _REMEDY)
    columns: list[list[Any]] = [stored[name] for name in ("name", "file", "size", "changed")]
    if len({len(column) for column in columns}) > 1:
        raise DataError(f"{printable(path)} is damaged: its lists differ in length. {_REMEDY}")
    pictures = list(map(Listed, *columns))
    for number in stored["gone"]:
        if number < len(pictures):
            pictures[number] = pictures[number]._replace(gone=True)
    return tuple(pictures)


def _still_there(one: Listed) -> Listed | None:
    """A picture that no source names any more, such as an example, if its file exists."""
    status = file_status(one.file)
    return None if status is None else one._replace(size=status[0], changed=status[1], gone=False)
