"""A folder that `protorect sort` made: its examples, and what a person moved since.

Pictures that are where they were placed are predictions, and no examples.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from protorect.images.stored import StoredPicture
from protorect.labeling.corrections import Correction, SortedPictures
from protorect.labeling.examples import project
from protorect.labeling.examples.found import Example, Found, latest
from protorect.labeling.placements import journal_files, load_plans


def recognizes(path: str, head: bytes) -> bool:
    """Whether a folder has the journal of a sorting."""
    return bool(journal_files(Path(path)))


def read(path: str, nested: bool) -> Found:
    """The examples of the last sorting, then corrections, then the labels of its project."""
    root = Path(path)
    examples = [*given_examples(root), *correction_examples(SortedPictures.load(root).corrections)]
    if project.recognizes(path, b""):
        examples += project.read(path, nested).examples
    return Found(latest(examples))


def given_examples(root: Path) -> list[Example]:
    """The examples of the last sorting into a folder that still exist."""
    plans = load_plans(root)
    known = plans[-1].examples if plans else ()
    return [
        Example(StoredPicture.from_file(file), label)
        for file, label in known
        if os.path.isfile(file)
    ]


def correction_examples(
    corrections: Iterable[Correction], *, new: bool | None = None
) -> list[Example]:
    """The pictures that a person put into a class folder; only those that are `new` or not."""
    return [
        Example(StoredPicture.from_file(one.file, one.target), one.label, sorted_too=True)
        for one in corrections
        if one.is_label and (new is None or one.is_new is new)
    ]
