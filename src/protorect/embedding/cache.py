"""A cache of features by the content of a picture, so that they are computed only once.

One SQLite file holds two tables: features by network and content, and the content of each file
when it was last read, which is valid as long as its size and modification time are the same.
Several processes may use it at once. What is stored carries a checksum, and is computed again where
that does not fit. A damaged cache is set aside under another name and a new one is begun; a file
that is not a cache is refused, never changed. Where a cache cannot be written, everything works
without it.
"""

import os
import sqlite3
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from protorect._utils.files import read_errors
from protorect._utils.text import printable
from protorect.errors import DataError

MAX_BYTES = 4 * 2**30
FILL_AFTER_EVICTION = 0.8  # of the maximum
FILE = "features.sqlite"
_FORMAT = 2
_APPLICATION = 0x70726F74  # "prot", in the header of the file
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TIMEOUT = 60.0  # seconds to wait for another process
# A change within the resolution of the file system's clock would not be noticed.
_MIN_AGE_NS = 2_000_000_000
_OBJECTS = {"features", "by_use", "files"}
_SET_UP = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {_APPLICATION};
CREATE TABLE IF NOT EXISTS features (
    network TEXT, content BLOB, vector BLOB, used INTEGER, PRIMARY KEY (network, content));
CREATE INDEX IF NOT EXISTS by_use ON features (used);
CREATE TABLE IF NOT EXISTS files (
    place BLOB PRIMARY KEY, size INTEGER, changed INTEGER, content BLOB) WITHOUT ROWID;
PRAGMA user_version = {_FORMAT};
COMMIT;
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
    if isinstance(cache, bool):
        return user_cache() if cache else None
    if os.path.lexists(cache) and not os.path.isdir(cache):
        raise DataError(f"{printable(cache)} is not a folder; give a folder for the cache.")
    return cache


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
        return _unsealed(rows[0][0], _place(file), *status) if rows else None

    def get(self, network: str, content: bytes) -> NDArray[np.float32] | None:
        """The features (dim,) of a content, or None if they are not stored."""
        vector = self.get_bytes(network, content)
        return np.frombuffer(vector, "<f4") if vector and len(vector) % 4 == 0 else None

    def get_bytes(self, maker: str, content: bytes) -> bytes | None:
        """What else was made of a content, such as its thumbnail, or None if it is not stored."""
        statement = "SELECT vector FROM features WHERE network = ? AND content = ?"
        rows = self._run(statement, [(maker, content)])
        return _unsealed(rows[0][0], maker, content) if rows else None

    def put_bytes(self, maker: str, content: bytes, made: bytes) -> None:
        """Store what was made of a content."""
        statement = "INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?)"
        self._run(statement, [(maker, content, _sealed(made, maker, content), _today())])

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
            [
                (network, content, _sealed(row.astype("<f4").tobytes(), network, content), today)
                for content, row in features
            ],
        )
        latest = time.time_ns() - _MIN_AGE_NS
        rows = [
            (_place(file), *status, _sealed(content, _place(file), *status))
            for file, content in files
            if (status := file_status(file)) is not None and status[1] < latest
        ]
        self._run("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", rows)
        if features or files:
            self._evict()

    def _open(self, file: Path) -> None:
        self._file = file
        _check_own(file)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._database = _connect(file)
            except sqlite3.Error as error:
                if not _is_damage(error):
                    raise
                _set_aside(file)
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
                if _is_damage(error):
                    with suppress(OSError):
                        _set_aside(self._file)
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
        if not _objects(database):
            database.executescript(_SET_UP)
        [[version]] = database.execute("PRAGMA user_version")
        if version != _FORMAT or _objects(database) != _OBJECTS:
            raise _damaged("a cache of another version, or changed by another program")
        database.execute("SELECT network, content, vector, used FROM features LIMIT 0")
        database.execute("SELECT place, size, changed, content FROM files LIMIT 0")
        database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
    except sqlite3.Error:
        database.close()
        raise
    return database


def _objects(database: sqlite3.Connection) -> set[str]:
    """The names of all tables, indices, views and triggers but those of SQLite itself."""
    names = database.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {name for (name,) in names}


def _damaged(reason: str) -> sqlite3.Error:
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is at fault, and not the disk or another process."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _check_own(file: Path) -> None:
    """Raise DataError for a file of somebody else; it is not even opened as a database."""
    if file.parent == user_cache() or not os.path.lexists(file):
        return
    with read_errors(file), file.open("rb") as opened:
        head = opened.read(100)
    if not head:
        return
    if head.startswith(b"SQLite format 3\0") and len(head) == 100:
        version, _, application = struct.unpack(">3I", head[60:72])
        if application == _APPLICATION or (version == 1 and _has_first_format(file)):
            return
    raise DataError(
        f"{printable(file)} is not a cache of protorect; give another folder for the cache, or "
        "move the file away."
    )


def _has_first_format(file: Path) -> bool:
    """Whether it has the tables of the first format, which had no mark; nothing is written."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?immutable=1", uri=True)) as first:
            first.execute("SELECT network, content, vector, used FROM features LIMIT 0")
            first.execute("SELECT place, size, changed, content FROM files LIMIT 0")
    except sqlite3.Error:
        return False
    return True


def _set_aside(file: Path) -> None:
    """Rename a damaged cache, with the log beside it that would be applied to a new one."""
    number = 1
    while os.path.lexists(aside := file.with_name(f"{file.name}.damaged-{number}")):
        number += 1
    os.rename(file, aside)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.rename(f"{file}{suffix}", f"{aside}{suffix}")


def _sealed(data: bytes, *key: str | bytes | int) -> bytes:
    """The data after a checksum of them and of what they are stored under."""
    return struct.pack("<I", zlib.crc32(data, zlib.crc32(repr(key).encode()))) + data


def _unsealed(stored: object, *key: str | bytes | int) -> bytes | None:
    """The data, or None if they are not as they were stored."""
    data = stored[4:] if isinstance(stored, bytes) else b""
    return data if isinstance(stored, bytes) and _sealed(data, *key) == stored else None


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
