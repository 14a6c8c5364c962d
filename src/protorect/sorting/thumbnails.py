"""Small square pictures for the contact sheet, named by the content they are of."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from protorect._utils.progress import Progress
from protorect.images.decode import decode
from protorect.images.stored import StoredPicture, UnreadableError
from protorect.sorting.placing import content_of

SIDE = 160
QUALITY = 78
_AT_ONCE = 256


def thumbnail_name(content: str) -> str:
    """The file of the picture with this SHA-256."""
    return f"{content[:32]}.jpg"


def make_thumbnails(
    folder: Path, pictures: Sequence[tuple[str, str]], progress: Progress | None = None
) -> None:
    """Make what is not there yet of pictures (file, SHA-256); an unreadable one gets none."""
    folder.mkdir(exist_ok=True)
    there = set(os.listdir(folder))
    wanted = [pair for pair in pictures if thumbnail_name(pair[1]) not in there]
    with ThreadPoolExecutor(os.cpu_count() or 1, "protorect-thumbnails") as pool:
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            list(pool.map(lambda pair: _make(folder, *pair), part))
            if progress is not None:
                progress(start + len(part), len(wanted))


def example_contents(files: Sequence[str]) -> dict[str, str]:
    """SHA-256 of the files that are still there."""
    return {file: content_of(Path(file)) for file in files if os.path.isfile(file)}


def _make(folder: Path, file: str, content: str) -> None:
    picture = StoredPicture.from_file(file)
    try:
        pixels = decode(picture.read(), SIDE, 3).pixels
    except UnreadableError:
        return
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "JPEG", quality=QUALITY)
    beside = folder / f".{thumbnail_name(content)}"
    beside.write_bytes(data.getvalue())
    os.replace(beside, folder / thumbnail_name(content))
