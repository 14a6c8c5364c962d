"""A labeling project: what a person labeled, accepted, or said to be unknown."""

import os
from pathlib import Path

from protorect._utils.text import printable
from protorect.errors import DataError, ProtorectError
from protorect.labeling.act_journal import ActJournal
from protorect.labeling.acts import ACTS, SAID_UNKNOWN, LabelState
from protorect.labeling.examples.found import Example, Found
from protorect.labeling.prediction import UNKNOWN
from protorect.labeling.project import JOURNAL, Project, is_project


def recognises(path: str, head: bytes) -> bool:
    """Whether a folder is a labeling project."""
    return os.path.isdir(path) and is_project(Path(path))


def read(path: str, nested: bool) -> Found:
    """The labels of the pictures that are still there."""
    project = Project(Path(path))
    state = _labels(project)
    names = {one.number: one.name for one in state.classes} | {SAID_UNKNOWN: UNKNOWN}
    labeled = [
        (one, names[number])
        for one, number in zip(project.pictures, state.label.tolist(), strict=True)
        if number in names
    ]
    present = [Example(one.stored(), label, True) for one, label in labeled if _exists(one.file)]
    gone = len(labeled) - len(present)
    notices = (f"{gone} labeled pictures of {printable(path)} are gone",) if gone else ()
    return Found(present, notices=notices)


def _labels(project: Project) -> LabelState:
    _, records, _ = ActJournal.load(project.home / JOURNAL)
    state = LabelState(len(project.pictures))
    for number, record in enumerate(records, 1):
        try:
            if record["kind"] in ACTS:
                state.apply(state.plan(record), number)
        except ProtorectError as error:
            where = f"{printable(project.home / JOURNAL)}, line {number + 1},"
            raise DataError(f"{where} cannot be carried out: {error}") from error
    return state


def _exists(file: str) -> bool:
    return os.path.isfile(file)
