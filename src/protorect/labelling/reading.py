"""Pictures to features: read, hashed and decoded in threads while the network computes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protorect.data.decoding import decode
from protorect.data.stored import StoredPicture, UnreadableError
from protorect.errors import DataError
from protorect.labelling.cache import FeatureCache
from protorect.labelling.embedders import Embedder
from protorect.labelling.pictures import Problem

Progress = Callable[[int, int], None]
PICTURES_IN_A_CHUNK = 64
_CHUNKS_WAITING = 2  # for each thread: enough to keep the network busy, few enough to bound memory
LARGEST_IN_MEMORY = 2**30  # bytes of features; more of them lie in a file, which is mapped


@dataclass(frozen=True)
class Embedded:
    """The pictures that could be read, with their features.

    Parameters
    ----------
    pictures
        In the order in which they came.
    features
        (n, dim), in step with `pictures`.
    contents
        SHA-256 of each file.
    problems
        The pictures that could not be read.
    """

    pictures: tuple[StoredPicture, ...]
    features: NDArray[np.float32]
    contents: tuple[bytes, ...]
    problems: tuple[Problem, ...]


class _Read(NamedTuple):
    """A picture read: its content, and its pixels unless its features are known.

    `opened` says whether the file had to be read to know its content.
    """

    picture: StoredPicture
    content: bytes = b""
    pixels: NDArray[np.uint8] | None = None
    problem: str = ""
    opened: bool = True


def embed_pictures(
    pictures: Sequence[StoredPicture],
    embedder: Embedder,
    cache: FeatureCache,
    progress: Progress | None = None,
) -> Embedded:
    """Features of pictures; those known from before are not computed again."""
    kept: list[StoredPicture] = []
    contents: list[bytes] = []
    problems: list[Problem] = []
    features: NDArray[np.float32] | None = None
    done = 0
    for chunk in _read_ahead(pictures, embedder, cache):
        readable = [one for one in chunk if not one.problem]
        problems += [Problem(one.picture.file, one.problem) for one in chunk if one.problem]
        if readable:
            rows = _features(readable, embedder, cache)
            if features is None:
                features = _room_for(len(pictures), rows.shape[1])
            features[len(kept) : len(kept) + len(rows)] = rows
            kept += [one.picture for one in readable]
            contents += [one.content for one in readable]
        done += len(chunk)
        if progress is not None:
            progress(done, len(pictures))
    found = np.empty((0, 0), np.float32) if features is None else features[: len(kept)]
    return Embedded(tuple(kept), found, tuple(contents), tuple(problems))


def _read_ahead(
    pictures: Sequence[StoredPicture], embedder: Embedder, cache: FeatureCache
) -> Iterator[list[_Read]]:
    threads = os.cpu_count() or 1
    waiting: deque[Future[list[_Read]]] = deque()
    pool = ThreadPoolExecutor(threads, "protorect-decode")
    try:
        for start in range(0, len(pictures), PICTURES_IN_A_CHUNK):
            part = pictures[start : start + PICTURES_IN_A_CHUNK]
            waiting.append(pool.submit(_read_chunk, part, embedder, cache))
            if len(waiting) > _CHUNKS_WAITING * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _read_chunk(
    pictures: Sequence[StoredPicture], embedder: Embedder, cache: FeatureCache
) -> list[_Read]:
    return [_read(picture, embedder, cache) for picture in pictures]


def _read(picture: StoredPicture, embedder: Embedder, cache: FeatureCache) -> _Read:
    content = cache.known_content(picture.file) if not picture.problem else None
    if content is not None and cache.has(embedder.digest, content):
        return _Read(picture, content, opened=False)
    try:
        data = picture.read()
        content = hashlib.sha256(data).digest()
        if cache.has(embedder.digest, content):
            return _Read(picture, content)
        pixels = decode(data, embedder.size, embedder.channels).pixels
    except UnreadableError as error:
        return _Read(picture, problem=str(error))
    return _Read(picture, content, pixels)


def _features(
    read: Sequence[_Read], embedder: Embedder, cache: FeatureCache
) -> NDArray[np.float32]:
    """Features (n, dim) of a chunk, from the cache or from the network."""
    asked = [one.content for one in read if one.pixels is None]
    known = cache.find(embedder.digest, asked) if asked else {}
    fresh = [one for one in read if one.content not in known]
    new: list[tuple[bytes, NDArray[np.float32]]] = []
    if fresh:
        pixels = np.stack([_pixels(one, embedder) for one in fresh])
        rows = np.ascontiguousarray(embedder(pixels), np.float32)
        new = [(one.content, row) for one, row in zip(fresh, rows, strict=True)]
        if not np.isfinite(rows).all():
            raise DataError("the network gave features that are not finite numbers.")
        known |= dict(new)
    opened = [(one.picture.file, one.content) for one in read if one.opened]
    if opened:
        cache.keep(embedder.digest, new, opened)
    lengths = {len(row) for row in known.values()}
    if len(lengths) > 1:
        raise DataError(f"the network gave features of several lengths: {sorted(lengths)}.")
    return np.stack([known[one.content] for one in read])


def _pixels(one: _Read, embedder: Embedder) -> NDArray[np.uint8]:
    """Decoded already, but for the rare picture that the cache has lost in the meantime."""
    if one.pixels is not None:
        return one.pixels
    try:
        return decode(one.picture.read(), embedder.size, embedder.channels).pixels
    except UnreadableError as error:
        raise DataError(f"{one.picture.path} changed while it was read: {error}.") from error


def _room_for(rows: int, dim: int) -> NDArray[Any]:
    """An array to fill; a large one lies in a file that the system can put aside."""
    length = rows * dim * 4
    if length <= LARGEST_IN_MEMORY:
        return np.empty((rows, dim), np.float32)
    try:
        with tempfile.TemporaryFile(prefix="protorect-") as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is known now, not half-way
                os.posix_fallocate(file.fileno(), 0, length)
            return np.memmap(file, np.float32, "w+", shape=(rows, dim))
    except OSError as error:
        where = tempfile.gettempdir()
        raise DataError(
            f"no room in {where} for {length / 1e9:.1f} GB of features: {error.strerror}. "
            "Name another place in TMPDIR."
        ) from error
