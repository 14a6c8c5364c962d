"""Sorting what arrives in a folder, as it arrives."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

from protorect.images.find import PictureSource
from protorect.sorting.folder import SortedFolder
from protorect.sorting.sort import Sorted, Sorter

SECONDS = 2.0  # between two looks

Look = dict[str, tuple[int, int]]


def watch(
    sorter: Sorter, pictures: PictureSource, folder: SortedFolder, seconds: float = SECONDS
) -> Iterator[Sorted]:
    """Yield what became of new pictures, for ever.

    A picture is taken when two looks find it unchanged, so that none is read while it is still
    being written. One that could not be read is tried again only when it has changed.
    """
    last: Look = {}
    failed: Look = {}
    while True:
        pile = sorter.pile(pictures, folder)
        now = {picture.file: _look(picture.file) for picture in pile.pictures}
        ready = tuple(
            picture
            for picture in pile.pictures
            if last.get(picture.file) == now[picture.file] != failed.get(picture.file)
        )
        if ready:
            done = sorter.write(sorter.sort(replace(pile, pictures=ready), folder))
            folder = done.folder
            failed |= {path: now[path] for path, _ in done.problems if path in now}
            yield done
        last = now
        time.sleep(seconds)


def _look(file: str) -> tuple[int, int]:
    """Size and time of change; what cannot be looked at never changes."""
    try:
        status = os.stat(file)
    except OSError:
        return (-1, -1)
    return status.st_size, status.st_mtime_ns
