"""What the recent acts changed: for pages that ask again, also after the program was restarted.

The log is a convenience: it is not synced to disk, and where it is missing or damaged an act is
answered without its changes.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from protorect._utils.documents import COUNT, read_json_lines
from protorect._utils.files import write_text
from protorect.errors import DataError
from protorect.labeling.records import Changes

KEPT = 200  # acts
_LARGEST = 16 * 2**20  # bytes; a longer file is shortened when it is read
_NUMBER = range(-1, 2**31)
_LINE = {
    "act": COUNT,
    "kind": str,
    "label": {str, None},
    "ids": [COUNT],
    "changed": [COUNT],
    "before": [_NUMBER],
    "after": [_NUMBER],
    "names": {str: str},
}


@dataclass(frozen=True, eq=False)
class LoggedAct:
    """An act, what it was about and what else it changed."""

    act: int
    kind: str
    label: str | None
    ids: tuple[int, ...]
    changes: Changes

    def line(self) -> str:
        """One line of the log."""
        before, after = self.changes.labels.T.tolist()
        fields: dict[str, Any] = {"act": self.act, "kind": self.kind, "label": self.label}
        fields |= {"ids": self.ids, "changed": self.changes.ids.tolist()}
        names = {str(number): name for number, name in self.changes.names.items()}
        return json.dumps(fields | {"before": before, "after": after, "names": names}) + "\n"


class ChangeLog:
    """The recent acts, in memory and in a file."""

    def __init__(self, path: Path, writable: bool) -> None:
        self._path, self._writable = path, writable
        self._acts: dict[int, LoggedAct] = {}
        for one in _read(path):
            self._keep(one)
        if writable and path.is_file() and path.stat().st_size > _LARGEST:
            lines = [one.line() for one in list(self._acts.values())[-10:]]
            write_text(path, "".join(lines))

    def add(self, act: LoggedAct) -> None:
        """Keep an act; a file that cannot be written is left as it is."""
        self._keep(act)
        if self._writable:
            try:
                with self._path.open("a", encoding="ascii") as file:
                    file.write(act.line())
            except OSError:
                self._writable = False  # a part of a line may be there: nothing may follow it

    def get(self, act: int) -> LoggedAct | None:
        """An act, if it is still known."""
        return self._acts.get(act)

    def _keep(self, act: LoggedAct) -> None:
        self._acts[act.act] = act
        while len(self._acts) > KEPT:
            del self._acts[next(iter(self._acts))]


def _read(path: Path) -> Iterator[LoggedAct]:
    """The acts of a file up to the first damaged line."""
    if not path.is_file():
        return
    try:
        for line in read_json_lines(path, repeat(_LINE), ""):
            columns = [np.array(line[name], np.int64) for name in ("changed", "before", "after")]
            if len({len(column) for column in columns}) > 1:
                return
            names = {int(number): name for number, name in line["names"].items()}
            changes = Changes(columns[0], np.stack(columns[1:], axis=1), names)
            yield LoggedAct(line["act"], line["kind"], line["label"], tuple(line["ids"]), changes)
    except (DataError, ValueError):
        return
