"""Square thumbnails for the contact sheet, named by the content of their pictures."""

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

SIDE = 160
QUALITY = 78
_CHUNK = 256


def thumbnail_name(content: str) -> str:
    """The file name of the thumbnail of the picture with this SHA-256."""
    return f"{content[:32]}.jpg"


def make_thumbnails(
    folder: Path, pictures: Sequence[tuple[str, str]], progress: Progress | None = None
) -> None:
    """Make the missing thumbnails of pictures (file, SHA-256); an unreadable one gets none."""
    folder.mkdir(parents=True, exist_ok=True)
    existing = set(os.listdir(folder))
    by_content = {content: file for file, content in pictures}
    missing = [
        (file, content)
        for content, file in by_content.items()
        if thumbnail_name(content) not in existing
    ]
    with ThreadPoolExecutor(os.cpu_count() or 1, "protorect-thumbnails") as pool:
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            list(pool.map(lambda pair: _make(folder, *pair), chunk))
            if progress is not None:
                progress(start + len(chunk), len(missing))


def _make(folder: Path, file: str, content: str) -> None:
    try:
        pixels = decode(StoredPicture.from_file(file).read(), SIDE, 3).pixels
    except UnreadableError:
        return
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "JPEG", quality=QUALITY)
    temporary = folder / f".{thumbnail_name(content)}"
    temporary.write_bytes(data.getvalue())
    os.replace(temporary, folder / thumbnail_name(content))
