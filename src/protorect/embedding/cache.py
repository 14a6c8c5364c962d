"""Features kept by what is in a picture, so that a second sorting need not compute them again.

One SQLite file holds two tables: the features of a picture's content under a network, and the
content last seen in a file, known again by its place, size and time of change. Several processes
may use it at once. It is never more than a cache: damaged, it starts anew; where it cannot be
written, the work is done without it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 4 * 2**30
KEPT_WHEN_FULL = 0.8
FILE = "features.sqlite"
_FORMAT = 1
_WAIT_SECONDS = 60.0
_NAMES_AT_ONCE = 500  # SQLite takes a limited number of values in a question
# A file changed within the same tick of the clock after it was read would look the same.
_SETTLED_NS = 2_000_000_000
_TABLES = """
CREATE TABLE IF NOT EXISTS features (
    network TEXT, content BLOB, vector BLOB, used INTEGER, PRIMARY KEY (network, content));
CREATE INDEX IF NOT EXISTS by_use ON features (used);
CREATE TABLE IF NOT EXISTS files (
    place BLOB PRIMARY KEY, size INTEGER, changed INTEGER, content BLOB) WITHOUT ROWID;
"""


def user_cache() -> Path:
    """Where this system keeps what can be made again."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "protorect"


class FeatureCache:
    """Features by content; every method does nothing, or finds nothing, if there is no file.

    Parameters
    ----------
    folder
        Where the file is; None to keep nothing.
    most_bytes
        What the file may hold; the features not used for longest go first.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, most_bytes: int = MOST_BYTES) -> None:
        self.problem = ""
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._base: sqlite3.Connection | None = None
        if folder is not None:
            self._open(Path(folder) / FILE)

    def __enter__(self) -> FeatureCache:
        return self

    def __exit__(self, *_: object) -> None:
        if self._base is not None:
            self._base.close()
            self._base = None

    def known_content(self, file: str) -> bytes | None:
        """SHA-256 of a file as it was last read, if it has not changed since."""
        status = _status(file)
        if status is None:
            return None
        found = self._ask(
            "SELECT content FROM files WHERE place = ? AND size = ? AND changed = ?",
            (os.fsencode(file), *status),
        )
        return found[0][0] if found else None

    def has(self, network: str, content: bytes) -> bool:
        """Whether the features of a content are here."""
        asked = "SELECT 1 FROM features WHERE network = ? AND content = ?"
        return bool(self._ask(asked, (network, content)))

    def find(self, network: str, contents: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """The features that are here, by content; they count as used today."""
        found: dict[bytes, NDArray[np.float32]] = {}
        for start in range(0, len(contents), _NAMES_AT_ONCE):
            part = contents[start : start + _NAMES_AT_ONCE]
            marks = ",".join("?" * len(part))
            asked = (
                f"SELECT content, vector FROM features WHERE network = ? AND content IN ({marks})"
            )
            for content, vector in self._ask(asked, (network, *part)):
                if isinstance(vector, bytes) and vector and len(vector) % 4 == 0:
                    found[content] = np.frombuffer(vector, "<f4")
        today = _today()
        self._tell(
            "UPDATE features SET used = ? WHERE network = ? AND content = ? AND used < ?",
            [(today, network, content, today) for content in found],
        )
        return found

    def keep(
        self,
        network: str,
        features: Iterable[tuple[bytes, NDArray[np.float32]]],
        files: Iterable[tuple[str, bytes]],
    ) -> None:
        """Keep features by content, and the contents of files."""
        today = _today()
        self._tell(
            "INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?)",
            [(network, content, row.astype("<f4").tobytes(), today) for content, row in features],
        )
        settled = time.time_ns() - _SETTLED_NS
        rows = []
        for file, content in files:
            status = _status(file)
            if status is not None and status[1] < settled:
                rows.append((os.fsencode(file), *status, content))
        self._tell("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", rows)
        self._make_room()

    def _open(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._base = _opened(file)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                file.unlink()  # damaged, or no such file at all
                self._base = _opened(file)
        except (OSError, sqlite3.Error) as error:
            self.problem = str(error)

    def _ask(self, question: str, values: Sequence[Any]) -> list[Any]:
        with self._lock:
            if self._base is None:
                return []
            try:
                return self._base.execute(question, values).fetchall()
            except sqlite3.Error as error:
                self._give_up(error)
                return []

    def _tell(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._lock:
            if self._base is None or not rows:
                return
            try:
                with self._base:
                    self._base.executemany(statement, rows)
            except sqlite3.Error as error:
                self._give_up(error)

    def _make_room(self) -> None:
        size = "SELECT (page_count - freelist_count) * page_size FROM " + ", ".join(
            f"pragma_{name}()" for name in ("page_count", "freelist_count", "page_size")
        )
        found = self._ask(size, ())
        if found and found[0][0] > self._most_bytes:
            share = 1 - KEPT_WHEN_FULL * self._most_bytes / found[0][0]
            for table, order in (("features", "used, rowid"), ("files", "changed")):
                key = "rowid" if table == "features" else "place"
                oldest = f"SELECT {key} FROM {table} ORDER BY {order} LIMIT "
                oldest += f"(SELECT CAST(? * count(*) AS INTEGER) + 1 FROM {table})"
                self._tell(f"DELETE FROM {table} WHERE {key} IN ({oldest})", [(share,)])

    def _give_up(self, error: sqlite3.Error) -> None:
        """Go on without: a full disk or a damaged file must not stop the sorting."""
        self.problem = str(error)
        if self._base is not None:
            self._base.close()
            self._base = None


def _opened(file: Path) -> sqlite3.Connection:
    # Threads that decode ask whether a picture is known; a lock lets one ask at a time.
    base = sqlite3.connect(file, timeout=_WAIT_SECONDS, check_same_thread=False)
    try:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = NORMAL")
        held = base.execute("PRAGMA user_version").fetchone()[0]
        if held not in (0, _FORMAT):
            raise sqlite3.DatabaseError("a cache of another version")
        base.executescript(_TABLES)
        base.execute(f"PRAGMA user_version = {_FORMAT}")
        base.commit()
    except sqlite3.Error:
        base.close()
        raise
    return base


def _status(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def _today() -> int:
    return int(time.time() // 86400)
