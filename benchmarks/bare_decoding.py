"""Decoding and resizing with Pillow in several processes, to compare `protorect prepare` with.

No hash, no index, nothing written. JPEG files are reduced while decoding and resized as `prepare`
does it, so that both do the same arithmetic.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from PIL import Image

CHUNK = 64


def decode_all(paths: list[str], size: int, workers: int) -> None:
    """Decode every picture to `size` x `size` and discard it."""
    chunks = [paths[start : start + CHUNK] for start in range(0, len(paths), CHUNK)]
    work = partial(_decode, size=size)
    if workers == 1:
        for chunk in chunks:
            work(chunk)
        return
    with ProcessPoolExecutor(workers, get_context("forkserver")) as pool:
        list(pool.map(work, chunks))


def _decode(paths: list[str], size: int) -> None:
    for path in paths:
        with Image.open(path) as image:
            image.draft(None, (2 * size, 2 * size))
            image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC, reducing_gap=3.0)
