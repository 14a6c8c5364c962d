"""What the readers of examples return."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from protorect.errors import DataError
from protorect.images.stored import StoredPicture
from protorect.labeling.prediction import UNKNOWN, UNSURE

CHECKED = ("example", "accepted")  # a status of what a person has said
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|([nrt]))")


class Example(NamedTuple):
    """A picture that a person labeled."""

    picture: StoredPicture
    label: str  # a class, or `_unknown`
    sorted_too: bool = False  # a corrected picture, which is sorted like the others


class Found(NamedTuple):
    """The examples of one source."""

    examples: list[Example]
    empty: tuple[str, ...] = ()  # classes without an example
    notices: tuple[str, ...] = ()
    complete: bool = True  # False: corrections of a sorting, without the examples of that


@dataclass(frozen=True)
class Row:
    """One line of a table of pictures; what its table does not have is empty."""

    where: str  # file and line, for messages
    path: str
    label: str
    status: str = ""  # example, accepted, or anything else if it is unchecked
    predicted: str = ""  # the label as it was predicted
    folder: str = ""
    runner_up: str = ""
    placed: str = ""  # where the picture was placed, relative to the table

    def is_checked(self) -> bool:
        """Whether a person has given or accepted the label."""
        if self.status.strip().lower() in CHECKED:
            return True
        if self.predicted:
            return self.label != self.predicted
        if self.folder in (UNKNOWN, UNSURE):
            return self.label in (self.runner_up, UNKNOWN)
        return bool(self.folder) and self.label != self.folder

    def said(self) -> str | None:
        """The label that a person gave; None if it is unchecked."""
        if self.placed and self.folder and self.folder != self.placed.split("/")[0]:
            return None if self.folder == UNSURE else self.folder
        if not self.label:
            return UNKNOWN if self.status == "unknown" else None
        return self.label if self.is_checked() and self.label != UNSURE else None


def example_of(row: Row, label: str, root: str, sorted_too: bool = False) -> Example:
    """The example of a line; DataError with file and line if there is no such picture."""
    if not row.path:
        raise DataError(f"{row.where}: the path of the picture is missing.")
    if not label:
        raise DataError(f"{row.where}: {row.path} has no label.")
    picture = _find(row, root)
    if picture.error:
        raise DataError(f"{row.where}: {picture.path}: {picture.error}.")
    return Example(picture, label, sorted_too)


def latest(examples: Iterable[Example]) -> list[Example]:
    """Every picture once, with its last label: an earlier correction may have been corrected."""
    return list({os.path.realpath(one.picture.file): one for one in examples}.values())


def checked_rows(rows: Iterable[Row], root: str) -> list[Example]:
    """Those rows of a table of predictions that a person has changed or accepted."""
    return [
        example_of(row, label, root, sorted_too=True)
        for row in rows
        if (label := row.said()) is not None
    ]


def _find(row: Row, root: str) -> StoredPicture:
    """The picture of a line: its path, relative to `root`, or where it was moved."""
    names = [row.path, *(_unescaped(row.path, byte) for byte in (0xDC00, 0))]
    names += [row.path.replace("\\", "/"), row.placed]
    if not row.path.isascii():
        # A name on disk need not be Unicode, whatever the encoding of the table is.
        names.append(os.fsdecode(row.path.encode("latin-1", "replace")))
    pictures = [
        StoredPicture.from_file(os.path.join(root, name), row.path)
        for name in dict.fromkeys(filter(None, names))
    ]
    return next((one for one in pictures if not one.error), pictures[0])


def _unescaped(name: str, byte: int) -> str:
    """A file name of which `printable` has written bytes and control characters as escapes.

    From 0x80 on it may be either; `byte` is the code of byte 0 in Python's file names.
    """

    def sign(match: re.Match[str]) -> str:
        if match[3]:
            return {"n": "\n", "r": "\r", "t": "\t"}[match[3]]
        code = int(match[1] or match[2], 16)
        return chr(code + byte if match[1] and code >= 0x80 else code)

    return _ESCAPED.sub(sign, name)
