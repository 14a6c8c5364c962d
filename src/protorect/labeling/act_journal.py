"""The journal of a labeling project: one JSON object per line, on disk before an act is answered.

Line 0 names the format; every later line has its number `n` and ends with a checksum over itself
and all lines before it. So a line that was changed, removed or inserted outside of this program is
recognized, and so is a last line of which only a part was written when the power failed.
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from protorect._utils.documents import COUNT, checked, parse_json
from protorect._utils.files import LARGEST_TEXT, open_file, write_errors
from protorect._utils.text import printable
from protorect.errors import DataError, OptionError, ProtorectError

FORMAT, VERSION = "protorect-labeling", 1
_CHECK = ',"check":"00000000"}'
_LABELS = [({str, None}, [COUNT])]
_ANSWER = {"id": COUNT, "right": bool, "label?": {str, None}, "unknown?": bool}
# What the records of each kind have beside `n`, `kind` and `act_id`.
RECORDS: dict[str, dict[str, Any]] = {
    "label": {"labels": _LABELS},
    "accept": {"labels": _LABELS},
    "audit": {"labels": _LABELS, "audit": COUNT},
    "add_class": {"name": str, "key?": {str, None}, "ids": [COUNT]},
    "rename_class": {"name": str, "new": str},
    "merge_classes": {"name": str, "into": str},
    "set_key": {"name": str, "key": {str, None}},
    "move_class": {"name": str, "position": COUNT},
    "remove_class": {"name": str},
    "undo": {},
    "redo": {},
    "start_audit": {"ids": [COUNT], "labels": [str], "population": COUNT},
    "extend_audit": {"audit": COUNT, "ids": [COUNT], "labels": [str]},
    "answer_audit": {"audit": COUNT, "answers": [_ANSWER]},
    "join": {"pictures": COUNT},
}


class ActJournal:
    """An open journal; `revision` is the number of its records."""

    def __init__(self, path: Path, project: str, length: int, revision: int, check: int) -> None:
        self.path, self.project, self.revision = path, project, revision
        self._length, self._check = length, check
        self._file: int | None = None

    @classmethod
    def create(cls, path: Path, project: str) -> Self:
        """Write a new journal without acts."""
        head = {"format": FORMAT, "version": VERSION, "project": project}
        journal = cls(path, project, 0, -1, 0)
        journal.open_for_writing()
        journal.append(head)
        return journal

    @classmethod
    def load(cls, path: Path) -> tuple[Self, list[dict[str, Any]], bool]:
        """The journal, its records, and whether a part of a line follows, which is ignored."""
        lines = _lines(path)
        head_line, head, check = next(lines, (b"", {}, 0))
        if head.get("format") != FORMAT:
            raise DataError(f"{printable(path)} is not the journal of a labeling project.")
        if head["version"] > VERSION:
            raise DataError(
                f"{printable(path)} was written by a newer protorect (its version is "
                f"{head['version']}, this program reads {VERSION}); install that."
            )
        length, records = len(head_line), []
        for line, record, line_check in lines:
            length, check = length + len(line), line_check
            records.append(record)
        with open_file(path) as file:
            torn = os.fstat(file.fileno()).st_size > length
        return cls(path, head["project"], length, len(records), check), records, torn

    def open_for_writing(self) -> None:
        """Open the file, and remove the part of a line at its end."""
        with write_errors(self.path):
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0))
            os.ftruncate(self._file, self._length)

    def append(self, record: dict[str, Any], durable: bool = True) -> int:
        """Write a record and return its revision; DataError if it cannot be written.

        When this returns the record survives a power failure, unless it need not be `durable`. If
        it fails, the journal is as before.
        """
        if self._file is None:
            raise DataError("the project was opened for reading; open it for writing to act.")
        body = json.dumps({"n": self.revision + 1, **record}, separators=(",", ":"))
        try:
            _record(body.encode(), self.revision + 1)  # what could not be read back
        except ValueError as error:
            raise OptionError(f"this cannot be written to the journal: {error}.") from error
        check = zlib.crc32(body.encode(), self._check)
        line = f'{body[:-1]},"check":"{check:08x}"}}\n'.encode()
        with write_errors(self.path):
            try:
                _write(self._file, line, self._length)
                if durable:
                    os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, self._length)
                raise
        self._length += len(line)
        self._check = check
        self.revision += 1
        return self.revision

    @contextmanager
    def naming_line(self, number: int) -> Iterator[None]:
        """DataError that names the line of record `number`, if that cannot be carried out."""
        try:
            yield
        except ProtorectError as error:
            where = f"{printable(self.path)}, line {number + 1},"
            raise DataError(f"{where} cannot be carried out: {error}") from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _write(file: int, data: bytes, position: int) -> None:
    """Write all of the data at a position, which overwrites what a failed write may have left."""
    os.lseek(file, position, os.SEEK_SET)
    while data:
        data = data[os.write(file, data) :]


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any], int]]:
    """The complete lines of a journal, each with its record and its checksum."""
    check = 0
    with open_file(path) as file:
        for number, line in enumerate(iter(partial(file.readline, LARGEST_TEXT), b"")):
            if not line.endswith(b"\n"):
                return
            body = line[: -len(_CHECK) - 1] + b"}"
            check = zlib.crc32(body, check)
            try:
                if line[-len(_CHECK) - 1 :] != f',"check":"{check:08x}"}}\n'.encode():
                    raise ValueError("it is not as it was written")
                yield line, _record(body, number), check
            except ValueError as error:
                keep = f"Undo the change, or keep the first {number} lines only, which are intact."
                raise DataError(f"{printable(path)}, line {number + 1}: {error}. {keep}") from error


def _record(body: bytes, number: int) -> dict[str, Any]:
    """A line of the journal without its checksum, checked."""
    if number == 0:
        head = {"n": 0, "format": str, "version": COUNT, "project": str}
        first: dict[str, Any] = parse_json(body, head)
        return first
    record: dict[str, Any] = parse_json(body, {"n": number, "kind": str, "act_id?": str})
    if record["kind"] not in RECORDS:
        raise ValueError(f"kind is {record['kind'][:40]!r}, which this program does not know")
    checked(record, RECORDS[record["kind"]])
    return record
