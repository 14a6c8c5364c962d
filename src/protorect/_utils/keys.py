"""The user's own key, by which files are recognized that this user's protorect wrote here."""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from protorect._utils.files import read_bytes, user_folder
from protorect.errors import DataError

_LENGTH = 32  # bytes


def user_key() -> bytes:
    """The key, which is made if there is none; empty where none can be kept."""
    try:
        path = user_folder("XDG_STATE_HOME", ".local/state") / "key"
        if not path.exists():
            _make(path)
        key = read_bytes(path, _LENGTH)
    except (DataError, OSError, RuntimeError):  # no home, or none that can be written
        return b""
    return key if len(key) == _LENGTH else b""


def _make(path: Path) -> None:
    """Make a key that only its owner can read; the first of several processes wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(secrets.token_bytes(_LENGTH))
        with suppress(FileExistsError):
            try:
                os.link(temporary, path)
            except PermissionError:  # a file system without hard links
                os.rename(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
