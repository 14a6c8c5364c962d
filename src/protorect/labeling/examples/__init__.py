"""Labeled examples: from folders, tables, projects and the files of other programs.

A reader is a module with `recognizes(path, head)`, where `head` are the first bytes of a file, and
`read(path, nested)`, which returns `Found` without reading the pictures.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from protorect._utils.files import names_in, open_file
from protorect._utils.text import printable
from protorect.embedding.pipeline import Embedded
from protorect.errors import DataError
from protorect.images.stored import PathLike, StoredPicture
from protorect.labeling.examples.found import Example, Found
from protorect.labeling.prediction import UNKNOWN

# The first that recognizes a source reads it.
READERS = (
    "sorted_folder",
    "project",
    "huggingface",
    "folders",
    "parquet",
    "label_studio",
    "predictions",
    "table",
)
OneSource = PathLike | Mapping[str, Sequence[PathLike]]
ExampleSource = OneSource | Sequence[OneSource]
_FORMS = "a folder of class folders, as EXAMPLES/cat/1.jpg, or a CSV file with path,label"
_HEAD = 2**16  # bytes of a file by which its format is recognized


@dataclass(frozen=True)
class Examples:
    """Labeled pictures, before they are read."""

    pictures: tuple[StoredPicture, ...]
    labels: tuple[str, ...]  # one for each picture; `_unknown` for one of no class
    classes: tuple[str, ...]  # sorted, with those that have no picture
    sources: tuple[int, ...]  # the number of the source of each picture
    sorted_too: frozenset[str] = frozenset()  # files of corrections, which are sorted as well
    notices: tuple[str, ...] = ()  # what a person should know of them
    complete: bool = True  # False: corrections only, without the examples of their sorting

    @property
    def apart(self) -> list[str]:
        """The files that are examples only, and not sorted."""
        return [one.file for one in self.pictures if one.file not in self.sorted_too]

    def as_sources(self) -> list[Found]:
        """The sources that they were merged from, to be merged with others."""
        sources: list[Found] = [Found([]) for _ in range(max(self.sources, default=-1) + 1)]
        for number, picture, label in zip(self.sources, self.pictures, self.labels, strict=True):
            sources[number].examples.append(
                Example(picture, label, picture.file in self.sorted_too)
            )
        empty = tuple(set(self.classes) - set(self.labels))
        return [*sources, Found([], empty, self.notices, self.complete)]


def find_examples(
    source: ExampleSource | Examples, least: int = 2, nested: bool = False
) -> Examples:
    """List the examples of one or several sources without reading the pictures.

    A source is a folder of class folders, a table, or anything else that `READERS` recognize, or a
    mapping from labels to pictures. If two sources give a picture different labels, the later one
    counts, and a notice says so. There must be examples of at least `least` classes. Pictures in
    folders within a class folder are refused unless `nested`.
    """
    if isinstance(source, Examples):
        examples = source
    else:
        sources = [source] if isinstance(source, str | os.PathLike | Mapping) else source
        examples = merged([_read(one, nested) for one in sources])
    if examples.complete:
        check_classes(examples, least)
    return examples


def check_classes(examples: Examples, least: int = 2) -> None:
    """Raise DataError if there are examples of fewer classes."""
    if len(examples.classes) < least:
        only = f"one class only, {examples.classes[0]!r}" if examples.classes else "no class"
        needed = "two classes" if least > 1 else "one class"
        raise DataError(f"the examples have {only}; give at least {needed}: {_FORMS}.")


def merged(sources: Sequence[Found]) -> Examples:
    """The examples of all sources; of a file with two labels, the one of the later source."""
    kept: list[tuple[Example, int]] = []
    notices = [notice for found in sources for notice in found.notices]
    for number, found in enumerate(sources):
        later = {os.path.realpath(one.picture.file): one for one in found.examples}
        earlier, kept = kept, []
        for example, source in earlier:
            same = later.get(os.path.realpath(example.picture.file))
            if same is None:
                kept.append((example, source))
            elif same.label != example.label:
                notices.append(
                    f"{same.picture.path} is {example.label} in an earlier source of examples and "
                    f"{same.label} in a later one, which counts"
                )
        kept += [(one, number) for one in found.examples]
    examples = [example for example, _ in kept]
    labels = tuple(example.label for example in examples)
    empty = {name for found in sources for name in found.empty}
    return Examples(
        tuple(example.picture for example in examples),
        labels,
        tuple(sorted({*labels, *empty} - {UNKNOWN})),
        tuple(number for _, number in kept),
        frozenset(example.picture.file for example in examples if example.sorted_too),
        tuple(notices),
        any(found.complete for found in sources) or not sources,
    )


def _read(source: OneSource, nested: bool) -> Found:
    if isinstance(source, Mapping):
        examples = [
            Example(StoredPicture.from_file(path), str(label))
            for label, paths in source.items()
            for path in paths
        ]
        return Found(examples, tuple(map(str, source)))
    path = os.fspath(source)
    if not os.path.exists(path):
        raise DataError(f"there are no examples at {printable(path)}; give {_FORMS}.")
    head = b""
    if os.path.isdir(path):
        names_in(path)  # refused by its name if it cannot be listed
    else:
        with open_file(path) as file:
            head = file.read(_HEAD)
    for name in READERS:
        reader = import_module(f"{__name__}.{name}")
        if reader.recognizes(path, head):
            found: Found = reader.read(path, nested)
            return found
    raise DataError(f"{printable(path)} has no examples; give {_FORMS}.")


def readable_labels(examples: Examples, embedded: Embedded) -> tuple[list[str], list[str]]:
    """Labels of the examples that could be read, and notices about those with two labels.

    DataError if a class has no readable example, or if one source gives a picture two labels.
    """
    unreadable = {problem.path for problem in embedded.problems}
    every = list(zip(examples.pictures, examples.labels, examples.sources, strict=True))
    readable = [(label, source) for one, label, source in every if one.file not in unreadable]
    labels, notices = _one_label_each(embedded, readable)
    for name in sorted(set(examples.classes) - set(labels)):
        paths = [picture.path for picture, label, _ in every if label == name]
        which = f" ({len(paths)} unreadable: {', '.join(paths[:3])})" if paths else ""
        raise DataError(
            f"the class {name} has no readable example{which}. Add at least one .jpg or .png."
        )
    return labels, notices


def _one_label_each(
    embedded: Embedded, given: list[tuple[str, int]]
) -> tuple[list[str], list[str]]:
    """The same label for pictures of the same content, that of the latest source.

    `given` has label and source of each picture.
    """
    last: dict[bytes, int] = {}
    notices = []
    for place, digest in enumerate(embedded.digests):
        other = last.setdefault(digest, place)
        (before, earlier), (label, source) = given[other], given[place]
        if before == label:
            continue
        paths = [embedded.pictures[i].path for i in (other, place)]
        if earlier == source:
            raise DataError(
                f"the same picture is an example of two classes: {paths[0]} ({before}) and "
                f"{paths[1]} ({label}). Remove one of them."
            )
        notices.append(
            f"{paths[1]} is the same picture as {paths[0]}; it is {label} and no longer "
            f"{before}, as the later source of examples says"
        )
        last[digest] = place
    return [given[last[digest]][0] for digest in embedded.digests], notices
