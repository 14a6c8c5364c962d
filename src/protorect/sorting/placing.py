"""Place one picture by a link, a copy or a move, and put it back; never replace another file.

Each step can be repeated after a crash at any moment. A move within a file system is a rename to a
name reserved for it; across file systems the copy is complete and on disk before the original is
removed. Temporary files have the random name of their plan, so that no file of the user is removed.
"""

import errno
import filecmp
import os
import shutil
import zlib
from collections.abc import Container
from pathlib import Path

from protorect._utils.files import sha256_of_file
from protorect.labeling.placements import Placement, Plan

# Errors that end the sorting, because every other picture would fail in the same way.
FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_NO_SYMBOLIC_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_PRIVILEGE_NOT_HELD = 1314  # of Windows, for users who may not make symbolic links


class NotPlacedError(OSError):
    """A picture that was left where it is; the message is the reason in a few words."""


def is_placed(placement: Placement, root: Path, mode: str) -> bool:
    """Whether a picture is where the plan says, and after a move only there."""
    exists = os.path.lexists(root / placement.target)
    return exists and (mode != "move" or not os.path.lexists(placement.prediction.path))


def place(placement: Placement, root: Path, plan: Plan) -> str:
    """Place a picture in the sorted folder; raises OSError.

    Returns how it was done: the mode of the plan, or "hard link" or "copy" where the system makes
    no symbolic links.
    """
    source, target = Path(placement.prediction.path), root / placement.target
    if is_placed(placement, root, plan.mode):
        return plan.mode
    if not os.path.lexists(source):
        raise NotPlacedError("it is gone")
    _check_inside(target, root)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(target, plan)
    temporary.unlink(missing_ok=True)
    if os.path.lexists(target):
        _clear(target, source)
    if plan.mode == "link":
        return _link(source, target, temporary)
    (_copy if plan.mode == "copy" else _move)(source, target, temporary)
    return plan.mode


def put_back(
    placement: Placement,
    root: Path,
    plan: Plan,
    also_elsewhere: Container[str] = (),
    trust: bool = False,
) -> None:
    """Undo `place`, whatever of it was done; raises OSError.

    A picture that was moved and then changed is moved back only on `trust`. A copy whose original
    is gone or changed stays, unless its SHA-256 is in `also_elsewhere`.
    """
    source, target = Path(placement.prediction.path), root / placement.target
    _check_inside(target, root)
    _temporary(target, plan).unlink(missing_ok=True)
    if plan.mode == "move":
        temporary = _temporary(source, plan)
        _give_up_reserved(placement, source, temporary)
        temporary.unlink(missing_ok=True)
        _move_back(placement, source, target, temporary, trust)
    elif os.path.lexists(target):
        _check_link_or_copy(placement, source, target, plan.mode)
        if not target.is_symlink() and placement.content not in also_elsewhere:
            _check_original(placement, source, target)
        target.unlink()


def _check_link_or_copy(placement: Placement, source: Path, target: Path, mode: str) -> None:
    """Raise NotPlacedError unless the target is the link or the copy that was made."""
    if target.is_symlink():
        if mode != "link" or os.readlink(target) != str(source):
            raise NotPlacedError("the link was changed; left as it is")
    elif target.stat().st_size and sha256_of_file(target) != placement.content:
        raise NotPlacedError("the copy was changed; left as it is")  # empty: a reserved name


def _check_original(placement: Placement, source: Path, target: Path) -> None:
    """Raise NotPlacedError if the content of the copy at the target is not in the source."""
    if not source.is_file():
        raise NotPlacedError("the original is gone; the copy is left as it is")
    if target.stat().st_size and sha256_of_file(source) != placement.content:
        raise NotPlacedError(f"the original {source} was changed; the copy is left as it is")


def _link(source: Path, target: Path, temporary: Path) -> str:
    """Make a symbolic link, or else a hard link, or else a copy."""
    try:
        target.symlink_to(source)
        return "link"
    except OSError as error:
        forbidden = getattr(error, "winerror", None) == _PRIVILEGE_NOT_HELD
        if not forbidden and error.errno not in _NO_SYMBOLIC_LINKS:
            raise
    try:
        os.link(source, target)
        return "hard link"
    except FileExistsError:
        raise
    except OSError:  # another file system, or one without hard links
        _copy(source, target, temporary)
        return "copy"


def _copy(source: Path, target: Path, temporary: Path, follow_links: bool = True) -> None:
    try:
        shutil.copy2(source, temporary, follow_symlinks=follow_links)
        if not temporary.is_symlink():
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        _reserve(target)
        try:
            os.replace(temporary, target)
        except OSError:
            target.unlink()
            raise
    finally:
        temporary.unlink(missing_ok=True)


def _move(source: Path, target: Path, temporary: Path) -> None:
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
        _move_across(source, target, temporary)


def _move_across(source: Path, target: Path, temporary: Path) -> None:
    """Move between file systems."""
    _copy(source, target, temporary, follow_links=False)
    source.unlink()


def _move_back(
    placement: Placement, source: Path, target: Path, temporary: Path, trust: bool
) -> None:
    if not os.path.lexists(target):
        if not os.path.lexists(source):
            raise NotPlacedError("it is neither where it was nor where it was moved to")
        return
    if os.path.lexists(source):
        _clear(target, source)
        return
    if not (trust or _is_own(placement, target)):
        raise NotPlacedError("another or a changed file is in its place; left as it is")
    source.parent.mkdir(parents=True, exist_ok=True)
    if placement.link and not os.path.isabs(placement.link):
        source.symlink_to(placement.link)
        target.unlink()
        return
    try:
        os.rename(target, source)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_across(target, source, temporary)


def _is_own(placement: Placement, target: Path) -> bool:
    """Whether the file at the target is the picture that was moved there."""
    if placement.link or target.is_symlink():
        return bool(placement.link) and target.is_symlink()
    return target.is_file() and sha256_of_file(target) == placement.content


def _check_inside(target: Path, root: Path) -> None:
    """Raise NotPlacedError if a link among the folders of the target leads elsewhere."""
    inside = target.parent.relative_to(root)
    if os.path.realpath(target.parent) != os.path.join(os.path.realpath(root), inside):
        raise NotPlacedError("a link in place of its folder leads elsewhere; left as it is")


def _give_up_reserved(placement: Placement, source: Path, temporary: Path) -> None:
    """Remove the empty file that reserved the name of the original when undo was killed.

    The complete copy beside it says that it was not made by anybody else.
    """
    reserved = source.is_file() and not source.is_symlink() and not source.stat().st_size
    if reserved and temporary.is_file() and sha256_of_file(temporary) == placement.content:
        source.unlink()


def _clear(target: Path, source: Path) -> None:
    """Remove what an interrupted step left at the target; anything else stays."""
    if target.is_symlink():
        removable = os.path.realpath(target) == os.path.realpath(source)
    else:
        removable = target.is_file() and (
            target.stat().st_size == 0
            or (not source.is_symlink() and filecmp.cmp(source, target, shallow=False))
        )
    if not removable:
        raise NotPlacedError(f"another file is at {target} and the picture at {source}; both stay")
    target.unlink()


def _reserve(target: Path) -> None:
    """Make an empty file; FileExistsError if another file has its name."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def _temporary(target: Path, plan: Plan) -> Path:
    """The file to write before it is renamed to `target`."""
    digest = zlib.crc32(os.fsencode(target.name))
    return target.with_name(f".protorect-{plan.name}-{digest:08x}.part")
