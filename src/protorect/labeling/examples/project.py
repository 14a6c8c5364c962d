"""A labeling project: what a person labeled, accepted, or said to be unknown."""

import os
from pathlib import Path

from protorect._utils.text import printable
from protorect.labeling.act_journal import ActJournal
from protorect.labeling.acts import ACTS, SAID_UNKNOWN, LabelState
from protorect.labeling.examples.found import Example, Found
from protorect.labeling.prediction import UNKNOWN
from protorect.labeling.project import JOURNAL, Project, is_project


def recognizes(path: str, head: bytes) -> bool:
    """Whether a folder is a labeling project."""
    return os.path.isdir(path) and is_project(Path(path))


def read(path: str, nested: bool) -> Found:
    """The labels of the pictures that are still there."""
    project = Project(Path(path))
    journal, records, _ = ActJournal.load(project.home / JOURNAL)
    state = LabelState(len(project.pictures))
    for number, record in enumerate(records, 1):
        if record["kind"] in ACTS:
            with journal.naming_line(number):
                state.apply(state.plan(record), number)
    names = {one.number: one.name for one in state.classes} | {SAID_UNKNOWN: UNKNOWN}
    labeled = [
        (one, names[number])
        for one, number in zip(project.pictures, state.label.tolist(), strict=True)
        if number in names
    ]
    present = [
        Example(one.stored(), label, sorted_too=True)
        for one, label in labeled
        if os.path.isfile(one.file)
    ]
    gone = len(labeled) - len(present)
    notices = (f"{gone} labeled pictures of {printable(path)} are gone",) if gone else ()
    return Found(present, notices=notices)
