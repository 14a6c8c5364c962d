"""A cache of features by the content of a picture, so that they are computed only once.

One SQLite file holds two tables: features by network and content, and the content of each file
when it was last read, which is valid as long as its size and modification time are the same.
Several processes may use it at once. A damaged cache is replaced by an empty one; where it cannot
be written, everything works without it.
"""

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

MAX_BYTES = 4 * 2**30
FILL_AFTER_EVICTION = 0.8  # of the maximum
FILE = "features.sqlite"
_FORMAT = 1
_TIMEOUT = 60.0  # seconds to wait for another process
# A change within the resolution of the file system's clock would not be noticed.
_MIN_AGE_NS = 2_000_000_000
_SET_UP = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS features (
    network TEXT, content BLOB, vector BLOB, used INTEGER, PRIMARY KEY (network, content));
CREATE INDEX IF NOT EXISTS by_use ON features (used);
CREATE TABLE IF NOT EXISTS files (
    place BLOB PRIMARY KEY, size INTEGER, changed INTEGER, content BLOB) WITHOUT ROWID;
PRAGMA user_version = {_FORMAT};
"""
_BYTES_IN_USE = """
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()
"""
# Both delete the oldest rows of a table; the parameter is the fraction to delete.
_EVICT_FEATURES = """
DELETE FROM features WHERE rowid IN (SELECT rowid FROM features ORDER BY used, rowid
LIMIT (SELECT CAST(? * count(*) AS INTEGER) + 1 FROM features))
"""
_EVICT_FILES = """
DELETE FROM files WHERE place IN (SELECT place FROM files ORDER BY changed
LIMIT (SELECT CAST(? * count(*) AS INTEGER) + 1 FROM files))
"""


def user_cache() -> Path:
    """The cache folder of this user, where the operating system expects it."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "protorect"


def cache_folder(cache: str | os.PathLike[str] | bool) -> str | os.PathLike[str] | None:
    """The folder of True (the user's cache folder), False (none) or a path."""
    return user_cache() if cache is True else None if cache is False else cache


class FeatureCache:
    """Features by content in a file in `folder`; if that is None, nothing is stored or found.

    Beyond `max_bytes`, the least recently used features are removed.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, max_bytes: int = MAX_BYTES) -> None:
        self.problem = ""  # why the folder cannot be used; empty if it can
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        if folder is not None:
            self._open(Path(folder) / FILE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def known_content(self, file: str) -> bytes | None:
        """SHA-256 of a file as it was last read, or None if it is unknown or has changed since."""
        status = file_status(file)
        if status is None:
            return None
        statement = "SELECT content FROM files WHERE place = ? AND size = ? AND changed = ?"
        rows = self._run(statement, [(_place(file), *status)])
        return rows[0][0] if rows else None

    def get(self, network: str, content: bytes) -> NDArray[np.float32] | None:
        """The features (dim,) of a content, or None if they are not stored."""
        vector = self.get_bytes(network, content)
        return np.frombuffer(vector, "<f4") if vector and len(vector) % 4 == 0 else None

    def get_bytes(self, maker: str, content: bytes) -> bytes | None:
        """What else was made of a content, such as its thumbnail, or None if it is not stored."""
        statement = "SELECT vector FROM features WHERE network = ? AND content = ?"
        rows = self._run(statement, [(maker, content)])
        return rows[0][0] if rows and isinstance(rows[0][0], bytes) else None

    def put_bytes(self, maker: str, content: bytes, made: bytes) -> None:
        """Store what was made of a content."""
        statement = "INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?)"
        self._run(statement, [(maker, content, made, _today())])

    def mark_used(self, network: str, contents: Iterable[bytes]) -> None:
        """Record that these features were used today."""
        today = _today()
        self._run(
            "UPDATE features SET used = ? WHERE network = ? AND content = ? AND used < ?",
            [(today, network, content, today) for content in contents],
        )

    def put(
        self,
        network: str,
        features: Sequence[tuple[bytes, Any]],
        files: Sequence[tuple[str, bytes]],
    ) -> None:
        """Store features (dim,) by content, and the contents of files."""
        today = _today()
        self._run(
            "INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?)",
            [(network, content, row.astype("<f4").tobytes(), today) for content, row in features],
        )
        latest = time.time_ns() - _MIN_AGE_NS
        rows = [
            (_place(file), *status, content)
            for file, content in files
            if (status := file_status(file)) is not None and status[1] < latest
        ]
        self._run("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", rows)
        if features or files:
            self._evict()

    def _open(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._database = _connect(file)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                file.unlink()  # damaged, or of another version
                self._database = _connect(file)
        except (OSError, sqlite3.Error) as error:
            self.problem = str(error)

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _run(self, statement: str, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Run a statement with each row of parameters, in one transaction; return its results."""
        with self._lock:
            if self._database is None or not rows:
                return []
            try:
                with self._database:
                    return [one for row in rows for one in self._database.execute(statement, row)]
            except sqlite3.Error as error:  # a full disk or a damaged file must not stop the work
                self.problem = str(error)
                self._close()
                return []

    def _evict(self) -> None:
        rows = self._run(_BYTES_IN_USE, [()])
        if rows and rows[0][0] > self._max_bytes:
            fraction = 1 - FILL_AFTER_EVICTION * self._max_bytes / rows[0][0]
            self._run(_EVICT_FEATURES, [(fraction,)])
            self._run(_EVICT_FILES, [(fraction,)])


def _connect(file: Path) -> sqlite3.Connection:
    # Several threads use the connection; a lock makes them take turns.
    database = sqlite3.connect(file, timeout=_TIMEOUT, check_same_thread=False)
    try:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _FORMAT):
            raise sqlite3.DatabaseError("a cache of another version")
        database.executescript(_SET_UP)
    except sqlite3.Error:
        database.close()
        raise
    return database


def file_status(file: str) -> tuple[int, int] | None:
    """Size and modification time in nanoseconds."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def _place(file: str) -> bytes:
    """The absolute path: a relative one means another file in another working folder."""
    return os.fsencode(os.path.abspath(file))


def _today() -> int:
    return int(time.time() // 86400)
