"""One picture into its folder and back: by a link, a copy or a move, never over another file.

Each step can be repeated after a crash at any moment. A move within a file system is a rename onto
a name reserved for it; across file systems the copy is complete and on disk before the original
goes.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from protorect.sorting.journal import Entry

MODES = ("link", "copy", "move")
# Of an error that ends the sorting, as no other picture would fare better.
FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class NotPlacedError(Exception):
    """A picture that was left where it is; the message is the reason in a few words."""


def is_placed(entry: Entry, root: Path, mode: str) -> bool:
    """Whether nothing is left to do."""
    there = os.path.lexists(root / entry.to)
    return there and (mode != "move" or not os.path.lexists(entry.prediction.path))


def place(entry: Entry, root: Path, mode: str) -> None:
    """Bring a picture to its place in the sorted folder; raises NotPlacedError or OSError."""
    source, target = Path(entry.prediction.path), root / entry.to
    if is_placed(entry, root, mode):
        return
    if not os.path.lexists(source):
        raise NotPlacedError("it is gone")
    target.parent.mkdir(parents=True, exist_ok=True)
    _part(target).unlink(missing_ok=True)
    if os.path.lexists(target):
        _clear(target, source)
    _PLACE[mode](source, target)


def put_back(entry: Entry, root: Path, mode: str) -> None:
    """Undo `place`, whatever of it was done; raises NotPlacedError or OSError."""
    source, target = Path(entry.prediction.path), root / entry.to
    _part(target).unlink(missing_ok=True)
    if mode == "move":
        _part(source).unlink(missing_ok=True)
        _move_back(entry, source, target)
    elif not os.path.lexists(target):
        return
    elif mode == "link":
        if not target.is_symlink() or os.readlink(target) != str(source):
            raise NotPlacedError("it is not the link that was made; left as it is")
        target.unlink()
    else:
        if target.is_symlink() or (content_of(target) != entry.content and target.stat().st_size):
            raise NotPlacedError("the copy was changed; left as it is")
        target.unlink()


def content_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _link(source: Path, target: Path) -> None:
    target.symlink_to(source)


def _copy(source: Path, target: Path) -> None:
    part = _part(target)
    try:
        shutil.copy2(source, part)
        _sync(part)
        _reserve(target)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _move(source: Path, target: Path) -> None:
    if source.is_symlink() and not os.path.isabs(os.readlink(source)):
        target.symlink_to(os.path.join(source.parent, os.readlink(source)))
        source.unlink()
        return
    _reserve(target)
    try:
        os.replace(source, target)
    except OSError as error:
        target.unlink()
        if error.errno != errno.EXDEV:
            raise
        _carry(source, target)


_PLACE: dict[str, Callable[[Path, Path], None]] = {"link": _link, "copy": _copy, "move": _move}


def _carry(source: Path, target: Path) -> None:
    """Move between file systems."""
    part = _part(target)
    try:
        shutil.copy2(source, part, follow_symlinks=False)
        if not part.is_symlink():
            _sync(part)
        _reserve(target)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    source.unlink()


def _move_back(entry: Entry, source: Path, target: Path) -> None:
    if not os.path.lexists(target):
        if not os.path.lexists(source):
            raise NotPlacedError("it is neither where it was nor where it was moved to")
        return
    if os.path.lexists(source):
        _clear(target, source)
        return
    source.parent.mkdir(parents=True, exist_ok=True)
    if entry.link and not os.path.isabs(entry.link):
        source.symlink_to(entry.link)
        target.unlink()
        return
    try:
        os.rename(target, source)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _carry(target, source)


def _clear(target: Path, source: Path) -> None:
    """Remove what an interrupted step left at the target; anything else stays."""
    if target.is_symlink() or source.is_symlink():
        ours = target.is_symlink() and os.path.realpath(target) == os.path.realpath(source)
        ours = ours or (target.is_file() and not target.is_symlink() and not target.stat().st_size)
    else:
        empty = target.is_file() and target.stat().st_size == 0
        ours = empty or (target.is_file() and filecmp.cmp(source, target, shallow=False))
    if not ours:
        raise NotPlacedError(f"another file is at {target} and the picture at {source}; both stay")
    target.unlink()


def _reserve(target: Path) -> None:
    """Take a name; FileExistsError if another file has it."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def _part(target: Path) -> Path:
    """Where a file is written before it has its name."""
    return target.with_name(f".{target.name}.part")


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
