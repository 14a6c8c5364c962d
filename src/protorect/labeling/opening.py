"""Open a labeling project, or make one from pictures or from a sorted folder.

Whatever can fail is checked before the first file is written.
"""

import os
import uuid
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from protorect._utils.text import printable
from protorect.embedding.sources import DEFAULT_SOURCE, Embedder, load_embedder
from protorect.errors import DataError
from protorect.images.find import FoundPictures, PictureSource
from protorect.images.stored import PathLike
from protorect.labeling.act_journal import ActJournal
from protorect.labeling.class_names import check_is_new, checked_class_name
from protorect.labeling.corrections import SortedPictures
from protorect.labeling.engine import Engine
from protorect.labeling.examples import Examples, ExampleSource, find_examples, merged
from protorect.labeling.picture_store import PictureStore
from protorect.labeling.placements import journal_files
from protorect.labeling.prediction import UNKNOWN
from protorect.labeling.project import (
    FEATURES,
    JOURNAL,
    Listed,
    Project,
    Settings,
    find_all,
    is_project,
    is_unfinished,
    listed,
    write_list,
    write_settings,
    write_writer,
    writing,
)
from protorect.methods import method as checked_method
from protorect.uncertainty.thresholds import DEFAULT_THRESHOLDS, Thresholds, checked_thresholds

_NO_PICTURES = "there is no picture in {}; give a folder, a pattern or a list of them."


@dataclass(frozen=True)
class Options:
    """How a session is opened; None keeps what the project has."""

    source: PathLike | None = None
    method: str | None = None
    thresholds: Thresholds | None = None
    precision: str = "auto"
    device: str = "auto"
    read_only: bool = False
    address: str = ""

    def embedder(self, network: str) -> Embedder:
        """Load a network."""
        return load_embedder(network, precision=self.precision, device=self.device)


@dataclass
class Opened:
    """An open project, before its threads are started."""

    engine: Engine
    embedder: Embedder | None  # if there is something to embed
    missing: list[int]  # pictures to embed
    notices: list[str] = field(default_factory=list)
    held: ExitStack = field(default_factory=ExitStack)  # the lock


def open_project(
    root: Path,
    pictures: PictureSource | None,
    examples: ExampleSource | Examples | None,
    options: Options,
) -> Opened:
    """Open a project, making it if it does not exist yet."""
    if options.method is not None:
        checked_method(options.method)
    if options.thresholds is not None:
        checked_thresholds(options.thresholds)
    if options.read_only:
        return _opened(Project(root), options, [])
    sources = None
    if pictures is not None:
        many = [pictures] if isinstance(pictures, str | os.PathLike) else pictures
        sources = tuple(os.path.abspath(one) for one in many)
    found = merged(()) if examples is None else find_examples(examples, least=1)
    if not is_project(root):
        sources, found, listing = _first_pictures(root, sources, found)
        _check_names(found)
        network = os.fspath(options.source or DEFAULT_SOURCE)
        options.embedder(network)  # before anything is written
        thresholds = options.thresholds or DEFAULT_THRESHOLDS
        with writing(root):
            if not is_project(root):  # else another process was faster
                given = (sources, network, options.method, *_values(thresholds))
                Project.create(root, Settings(uuid.uuid4().hex, *given), listing)
    else:
        _check_new_settings(Project(root), sources, options)
    _check_names(found)
    with ExitStack() as stack:
        stack.enter_context(writing(root))
        project = Project(root)
        write_writer(project.home, options.address)
        notices = [*_update(project, sources, found, options), *found.notices]
        opened = _opened(project, options, notices)
        try:
            _label_examples(opened.engine, found)
        except BaseException:
            opened.engine.journal.close()
            raise
        opened.held = stack.pop_all()
    return opened


def _opened(project: Project, options: Options, notices: list[str]) -> Opened:
    journal, records, torn = ActJournal.load(project.home / JOURNAL)
    if journal.project != project.settings.project:
        raise DataError(f"{printable(journal.path)} is the journal of another project.")
    store = PictureStore(project.home / FEATURES)
    store.check_ids(len(project.pictures))
    missing = [] if options.read_only else _missing(project.pictures, store)
    embedder = None
    if missing:
        embedder = options.embedder(project.settings.network)
        if store.use_network(embedder.digest):
            notices.append("the network is another one; all pictures are embedded again")
            missing = _missing(project.pictures, store)
    if not options.read_only:
        if torn:
            notices.append("the last line of the journal was incomplete and was dropped")
        journal.open_for_writing()
    engine = Engine(project, journal, records, store, writable=not options.read_only)
    return Opened(engine, embedder, missing, notices)


def _first_pictures(
    root: Path, sources: tuple[str, ...] | None, found: Examples
) -> tuple[tuple[str, ...], Examples, list[Listed]]:
    """Sources, examples and pictures of a new project."""
    if sources is None and journal_files(root):
        sources, found = _from_sorted(root)
    if sources is None:
        raise DataError(
            f"{printable(root)} is not a labeling project; to make one, give the pictures and a "
            "new folder."
        )
    if not journal_files(root) and root.exists() and not (root.is_dir() and is_unfinished(root)):
        raise DataError(f"{printable(root)} exists and is not empty; give a new folder.")
    entries = find_all(sources, root, missing_ok=bool(journal_files(root)))
    if not entries:
        raise DataError(_NO_PICTURES.format(", ".join(map(printable, sources))))
    return sources, found, _with_examples(entries, found)


def _from_sorted(root: Path) -> tuple[tuple[str, ...], Examples]:
    """Pictures and examples of a folder that `protorect sort` made."""
    plans = SortedPictures.load(root).plans
    sources = [
        str(root.absolute() / one.target) if plan.mode == "move" else one.prediction.path
        for plan in plans
        for one in plan.placements
    ]
    return tuple(dict.fromkeys(sources)), find_examples(root, least=0)


def _with_examples(entries: list[Listed], found: Examples) -> list[Listed]:
    """The list and those examples that are not in it."""
    known = {one.file for one in entries} if found.pictures else ()
    new = [one for one in found.pictures if one.file not in known and not one.error]
    unique = {one.file: one for one in new}
    return [*entries, *listed(FoundPictures(tuple(unique.values())))]


def _check_names(found: Examples) -> None:
    """Raise if the class of an example cannot be one of a project."""
    names: list[str] = []
    for label in found.classes:  # without `_unknown`
        name = checked_class_name(label)
        check_is_new(name, names)
        names.append(name)


def _check_new_settings(
    project: Project, sources: tuple[str, ...] | None, options: Options
) -> None:
    """Raise if an existing project cannot take the pictures or the network that are given."""
    if sources is not None and sources != project.settings.sources:
        find_all(sources, project.root, missing_ok=False)
    if options.source is not None or (options.precision, options.device) != ("auto", "auto"):
        options.embedder(os.fspath(options.source or project.settings.network))


def _update(
    project: Project, sources: tuple[str, ...] | None, found: Examples, options: Options
) -> list[str]:
    """Write down new settings, and which pictures are there now; sentences about that."""
    given: dict[str, Any] = {"sources": sources, "method": options.method}
    if options.source is not None:
        given["network"] = os.fspath(options.source)
    if options.thresholds is not None:
        given["unknown"], given["unsure"] = _values(options.thresholds)
    given = {name: value for name, value in given.items() if value is not None}
    settings = replace(project.settings, **given)
    seen = project.look_again(settings.sources)
    pictures = tuple(_with_examples(list(seen.pictures), found))
    if pictures != project.pictures:
        write_list(project.home, pictures)
    if settings != project.settings:
        write_settings(project.home, settings)
    project.pictures, project.settings = pictures, settings
    return seen.sentences()


def _values(thresholds: Thresholds) -> tuple[float, float]:
    return float(thresholds.unknown), float(thresholds.unsure)


def _missing(pictures: Iterable[Listed], store: PictureStore) -> list[int]:
    """Pictures that are not in the store as they are now."""
    index = store.index
    read = index[(index["reason"] == b"") | index["content"].any(axis=1)]  # others: once more
    columns = (read[name].tolist() for name in ("id", "size", "changed"))
    known = {number: (size, changed) for number, size, changed in zip(*columns, strict=True)}
    return [
        number
        for number, one in enumerate(pictures)
        if not one.gone and known.get(number) != (one.size, one.changed)
    ]


def _label_examples(engine: Engine, found: Examples) -> None:
    """Label the examples that were never labeled or unlabeled by hand, in one act."""
    if not found.pictures:
        return
    numbers = {one.file: number for number, one in enumerate(engine.project.pictures)}
    labels: dict[str, list[int]] = {}
    for picture, label in zip(found.pictures, found.labels, strict=True):
        number = numbers.get(picture.file)
        if number is not None and not engine.state.touched[number]:
            name = label if label == UNKNOWN else checked_class_name(label)
            labels.setdefault(name, []).append(number)
    if labels:
        pairs = [[name, np.unique(ids).tolist()] for name, ids in labels.items()]
        engine.act({"kind": "label", "labels": pairs})
