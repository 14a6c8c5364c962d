"""Sort pictures as they arrive in a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

from protorect.images.find import PictureSource
from protorect.images.stored import PathLike
from protorect.labeling.examples import ExampleSource
from protorect.sorting.folder import open_folder
from protorect.sorting.sort import Sorter, SortOptions, SortResult

SECONDS = 2.0  # between two scans


def watch(
    pictures: PictureSource,
    examples: ExampleSource,
    out: PathLike,
    options: SortOptions,
    **classifier_options: Any,
) -> Generator[SortResult]:
    """Sort what is there and then, forever, what arrives; yield the result of each round.

    A picture is sorted when two scans find it unchanged, so that none is read while it is still
    being written. One that could not be read is read again only when it has changed. The
    parameters are those of `sort_into`.
    """
    with open_folder(Path(out)) as folder:
        sorter = Sorter(folder, pictures, examples, options, **classifier_options)
        yield sorter.sort_all(may_be_empty=True)
        last: dict[str, tuple[int, int]] = {}
        failed: dict[str, tuple[int, int]] = {}
        while True:
            found = sorter.find()
            now = {picture.file: _state(picture.file) for picture in found.pictures}
            ready = tuple(
                picture
                for picture in found.pictures
                if last.get(picture.file) == now[picture.file] != failed.get(picture.file)
            )
            if ready:
                result = sorter.sort(replace(found, pictures=ready))
                failed |= {path: now[path] for path, _ in result.problems if path in now}
                yield result
            last = now
            time.sleep(SECONDS)


def _state(file: str) -> tuple[int, int]:
    """Size and time of change; a file that cannot be examined never changes."""
    try:
        status = os.stat(file)
    except OSError:
        return (-1, -1)
    return status.st_size, status.st_mtime_ns
