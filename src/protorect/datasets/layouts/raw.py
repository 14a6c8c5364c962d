"""Pictures that come as one array: written out once, so that workers can read any one of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.images.stored import StoredPicture


def store_raw(pixels: NDArray[np.uint8], name: str, scratch: Path) -> list[StoredPicture]:
    """Write raw pixels (n, height, width, channels) to scratch; one stored picture a row."""
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".raw", delete=False) as file:
        for row in pixels:
            file.write(row.tobytes())
    height, width, channels = pixels.shape[1:]
    length = height * width * channels
    return [
        StoredPicture(f"{name}/{row}", file.name, length, row * length, shape=pixels.shape[1:])
        for row in range(len(pixels))
    ]


def text(value: Any) -> str:
    """Text that Python 2 may have written as bytes."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
