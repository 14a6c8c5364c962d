"""A cache of features and thumbnails by the content of a picture: they are computed only once.

One SQLite file holds two tables. `features` has what was made of a picture, by what made it (the
digest of a network, or the name of a kind of thumbnail) and by the SHA-256 of the picture's file.
`files` has the SHA-256 of each file when it was last read, which is valid as long as the size and
the modification time of the file are the same.

Several processes may use it at once. What is stored carries a checksum, and is computed again where
that does not fit. A cache of another version is emptied, since all of it can be computed again. A
damaged one is set aside under another name and a new one is begun; a file that is not a cache is
refused, never changed. Where a cache cannot be written, everything works without it.
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

from protorect._utils.files import read_errors, user_folder
from protorect._utils.text import printable
from protorect.errors import DataError

MAX_BYTES = 4 * 2**30
FILL_AFTER_EVICTION = 0.8  # of the maximum
FILE = "features.sqlite"
_FORMAT = 2
_APPLICATION = 0x70726F74  # "prot", in the header of the file
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TIMEOUT = 60.0  # seconds to wait for another process
_TRIES, _SECONDS = 10, 0.1  # to replace a cache that another process has open
# A change within the resolution of the file system's clock would not be noticed.
_MIN_AGE_NS = 2_000_000_000
_OBJECTS = {"features", "by_use", "files"}
# `content` is the SHA-256 of a picture's file, `vector` what was made of the picture, `place` the
# absolute path of a file; `content` in `files` and `vector` have a checksum in front.
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
# The parameter is the fraction to delete: of features and thumbnails those least recently used, of
# the files those whose modification time is the earliest, as it is not known when they were used.
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
        return Path.home() / "Library" / "Caches" / "protorect"
    return user_folder("XDG_CACHE_HOME", ".cache")


def cache_folder(cache: str | os.PathLike[str] | bool) -> str | os.PathLike[str] | None:
    """The folder of True (the user's cache folder), False (none) or a path."""
    if isinstance(cache, bool):
        return user_cache() if cache else None
    if os.path.lexists(cache) and not os.path.isdir(cache):
        raise DataError(f"{printable(cache)} is not a folder; give a folder for the cache.")
    return cache


class FeatureCache:
    """Features and thumbnails by content, in a file in `folder`; None stores and finds nothing.

    Beyond `max_bytes`, those that were not used for the longest time are removed; the last use is
    known to the day.
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

    def known_digest(self, file: str) -> bytes | None:
        """SHA-256 of a file as it was last read, or None if it is unknown or has changed since."""
        status = file_status(file)
        if status is None:
            return None
        statement = "SELECT content FROM files WHERE place = ? AND size = ? AND changed = ?"
        rows = self._run(statement, [(_absolute(file), *status)])
        return _checked(rows[0][0], _absolute(file), *status) if rows else None

    def get(self, network: str, digest: bytes) -> NDArray[np.float32] | None:
        """The features (dim,) of a picture by the SHA-256 of its file, or None if not stored."""
        vector, _ = self._get(network, digest)
        return np.frombuffer(vector, "<f4") if vector and len(vector) % 4 == 0 else None

    def get_bytes(self, maker: str, digest: bytes) -> bytes | None:
        """What else was made of a picture, such as its thumbnail, or None if it is not stored.

        Its use is recorded, unlike that of features, which `mark_used` records many at once.
        """
        made, used = self._get(maker, digest)
        if made is not None and used != _today():
            self.mark_used(maker, [digest])
        return made

    def put_bytes(self, maker: str, digest: bytes, made: bytes) -> None:
        """Store what was made of a picture."""
        self._put_all(maker, [(digest, made)])

    def mark_used(self, network: str, digests: Iterable[bytes]) -> None:
        """Record that these features were used today."""
        today = _today()
        self._run(
            "UPDATE features SET used = ? WHERE network = ? AND content = ? AND used < ?",
            [(today, network, digest, today) for digest in digests],
        )

    def put(
        self,
        network: str,
        features: Sequence[tuple[bytes, Any]],
        files: Sequence[tuple[str, bytes]],
    ) -> None:
        """Store features (dim,) by the digest of their picture's file, and the digests of files."""
        self._put_all(network, [(digest, row.astype("<f4").tobytes()) for digest, row in features])
        latest = time.time_ns() - _MIN_AGE_NS
        rows = [
            (_absolute(file), *status, _with_checksum(digest, _absolute(file), *status))
            for file, digest in files
            if (status := file_status(file)) is not None and status[1] < latest
        ]
        self._insert("files", rows)

    def _get(self, maker: str, digest: bytes) -> tuple[bytes | None, object]:
        """What is stored, or None, and the day of its last use."""
        statement = "SELECT vector, used FROM features WHERE network = ? AND content = ?"
        rows = self._run(statement, [(maker, digest)])
        return (_checked(rows[0][0], maker, digest), rows[0][1]) if rows else (None, None)

    def _put_all(self, maker: str, made: Sequence[tuple[bytes, bytes]]) -> None:
        today = _today()
        rows = [
            (maker, digest, _with_checksum(data, maker, digest), today) for digest, data in made
        ]
        self._insert("features", rows)

    def _insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        self._run(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", rows)
        if rows:
            self._evict()

    def _open(self, file: Path) -> None:
        self._file = file
        _check_own(file)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                _empty_other_version(file)
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


def _empty_other_version(file: Path) -> None:
    """Empty a cache that another version of protorect made; sqlite3.Error if it is in use."""
    for left in reversed(range(_TRIES)):
        if not file.exists():
            return
        try:
            with closing(sqlite3.connect(file, timeout=_TIMEOUT, isolation_level=None)) as database:
                if _is_other_version(database, file):
                    # Fails while another process has the cache open.
                    database.execute("PRAGMA journal_mode = DELETE")
                    _drop_tables(database, file)
            return
        except sqlite3.OperationalError:  # perhaps another process that is about to do the same
            if not left:
                raise
            time.sleep(_SECONDS)


def _is_other_version(database: sqlite3.Connection, file: Path) -> bool:
    [[version]] = database.execute("PRAGMA user_version")
    [[application]] = database.execute("PRAGMA application_id")
    own = application == _APPLICATION or (version == 1 and _has_first_format(file))
    return own and version != _FORMAT


def _drop_tables(database: sqlite3.Connection, file: Path) -> None:
    """Drop all tables, unless another process has replaced the cache meanwhile."""
    database.execute("BEGIN EXCLUSIVE")
    if _is_other_version(database, file):
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in tables:
            quoted = name.replace('"', '""')
            database.execute(f'DROP TABLE "{quoted}"')
        database.execute("PRAGMA user_version = 0")
    database.execute("COMMIT")
    database.execute("VACUUM")


def _connect(file: Path) -> sqlite3.Connection:
    # Several threads use the connection; a lock makes them take turns.
    database = sqlite3.connect(file, timeout=_TIMEOUT, check_same_thread=False)
    try:
        if not _objects(database):
            database.executescript(_SET_UP)
        [[version]] = database.execute("PRAGMA user_version")
        if version != _FORMAT or _objects(database) != _OBJECTS:
            error = sqlite3.DatabaseError("a cache changed by another program")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        _check_columns(database)
        database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
        database.execute("SELECT 1 FROM files LIMIT 1").fetchall()  # from now on it is in use
    except sqlite3.Error:
        database.close()
        raise
    return database


def _check_columns(database: sqlite3.Connection) -> None:
    database.execute("SELECT network, content, vector, used FROM features LIMIT 0")
    database.execute("SELECT place, size, changed, content FROM files LIMIT 0")


def _objects(database: sqlite3.Connection) -> set[str]:
    """The names of all tables, indices, views and triggers but those of SQLite itself."""
    names = database.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {name for (name,) in names}


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
            _check_columns(first)
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


def _with_checksum(data: bytes, *key: str | bytes | int) -> bytes:
    """The data, preceded by a CRC-32 of the key and of the data."""
    return struct.pack("<I", zlib.crc32(data, zlib.crc32(repr(key).encode()))) + data


def _checked(stored: object, *key: str | bytes | int) -> bytes | None:
    """The data without their checksum, or None if that does not fit."""
    data = stored[4:] if isinstance(stored, bytes) else b""
    return data if isinstance(stored, bytes) and _with_checksum(data, *key) == stored else None


def file_status(file: str) -> tuple[int, int] | None:
    """Size and modification time in nanoseconds."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def _absolute(file: str) -> bytes:
    """The absolute path: a relative one means another file in another working folder."""
    return os.fsencode(os.path.abspath(file))


def _today() -> int:
    return int(time.time() // 86400)
