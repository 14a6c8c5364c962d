"""A folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protorect.data.stored import printable
from protorect.errors import DataError


@contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """Give a new folder beside `path` to fill; rename it to `path` only if the block succeeds.

    Whatever ends the block, an interrupt included, nothing half-written stays.
    """
    check_free(path)
    beside = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.partial"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        yield beside
        os.replace(beside, path)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {printable(str(path))}: {reason}.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_free(path: Path) -> None:
    """Raise DataError if something is there already; an empty folder is nothing."""
    try:
        taken = os.path.lexists(path) and not (path.is_dir() and not os.listdir(path))
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {printable(str(path))}: {reason}.") from error
    if taken:
        raise DataError(
            f"{printable(str(path))} exists already; remove it or give another name to --out."
        )
