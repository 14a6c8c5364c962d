"""Labeled examples: class folders, or a table of paths and labels."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from protorect._utils.tables import read_table
from protorect._utils.text import printable
from protorect.embedding.pipeline import Embedded
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.stored import PathLike, StoredPicture

ExampleSource = PathLike | Mapping[str, Sequence[PathLike]]
_FORMS = "a folder of class folders, as EXAMPLES/cat/1.jpg, or a CSV file with path,label"


@dataclass(frozen=True)
class Examples:
    """Labeled pictures, before they are read."""

    pictures: tuple[StoredPicture, ...]
    labels: tuple[str, ...]  # one for each picture
    classes: tuple[str, ...]  # sorted, with those that have no picture


def find_examples(source: ExampleSource, least: int = 2) -> Examples:
    """List the examples of class folders, a table or a mapping without reading the pictures.

    A table is a CSV file with the columns path and label; paths are relative to its own folder.
    There must be examples of at least `least` classes.
    """
    if isinstance(source, Mapping):
        rows = [
            (StoredPicture.from_file(path), str(label))
            for label, paths in source.items()
            for path in paths
        ]
        examples = _examples(rows, map(str, source))
    elif os.path.isdir(source):
        examples = _from_folders(Path(source))
    elif os.path.exists(source):
        examples = _from_table(os.fspath(source))
    else:
        where = printable(os.fspath(source))
        raise DataError(f"there are no examples at {where}; give {_FORMS}.")
    if len(examples.classes) < least:
        only = f"one class only, {examples.classes[0]!r}" if examples.classes else "no class"
        needed = "two classes" if least > 1 else "one class"
        raise DataError(f"the examples have {only}; give at least {needed}: {_FORMS}.")
    return examples


def _from_folders(root: Path) -> Examples:
    listing = list_pictures(root, scratch=root)  # scratch is for archives only
    loose = [picture.path for picture in listing.pictures if not picture.folders]
    if loose:
        raise DataError(
            f"{loose[0]} lies in {printable(str(root))} itself, in no class; put every example "
            "into the folder of its class."
        )
    rows = [
        (StoredPicture.from_file(picture.file, picture.path), picture.folders[0])
        for picture in listing.pictures
    ]
    names = (folder for folder in listing.folders if "/" not in folder)
    return _examples(rows, (name for name in names if not name.startswith((".", "__MACOSX"))))


def _from_table(file: str) -> Examples:
    """Examples of a CSV file that has a header with path and label, or just these two columns."""
    folder = os.path.dirname(os.path.abspath(file))
    table = read_table(file, ("path", "label"), header_required=False, errors="surrogateescape")
    rows = []
    for where, (name, label) in table:
        picture = StoredPicture.from_file(os.path.join(folder, name), name)
        if picture.error:
            raise DataError(f"{where}: {picture.path}: {picture.error}.")
        if not label:
            raise DataError(f"{where}: {picture.path} has no label.")
        rows.append((picture, printable(label)))
    return _examples(rows, ())


def _examples(rows: Sequence[tuple[StoredPicture, str]], names: Iterable[str]) -> Examples:
    labels = tuple(label for _, label in rows)
    classes = tuple(sorted({*labels, *names}))
    return Examples(tuple(picture for picture, _ in rows), labels, classes)


def readable_labels(examples: Examples, embedded: Embedded) -> list[str]:
    """Labels of the examples that could be read.

    DataError if a class has no readable example, or if one picture has two labels.
    """
    unreadable = {problem.path for problem in embedded.problems}
    pairs = list(zip(examples.pictures, examples.labels, strict=True))
    labels = [label for picture, label in pairs if picture.file not in unreadable]
    for name in sorted(set(examples.classes) - set(labels)):
        paths = [picture.path for picture, label in pairs if label == name]
        which = f" ({len(paths)} unreadable: {', '.join(paths[:3])})" if paths else ""
        raise DataError(
            f"the class {name} has no readable example{which}. Add at least one .jpg or .png."
        )
    first: dict[bytes, tuple[str, str]] = {}
    for picture, content, label in zip(embedded.pictures, embedded.contents, labels, strict=True):
        path, other = first.setdefault(content, (picture.path, label))
        if other != label:
            raise DataError(
                f"the same picture is an example of two classes: {path} ({other}) and "
                f"{picture.path} ({label}). Remove one of them."
            )
    return labels
