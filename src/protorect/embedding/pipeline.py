"""Pictures to features: each thread takes a few pictures the whole way, on one core.

Reading, hashing, decoding and the network release the interpreter's lock, so that all cores are
busy, and no core ever waits for another to finish its part of a layer.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.parallel import map_in_order
from protorect._utils.progress import Progress
from protorect.embedding.cache import FeatureCache
from protorect.embedding.sources import Embedder
from protorect.errors import DataError
from protorect.images.decode import decode
from protorect.images.find import FailedPicture
from protorect.images.stored import StoredPicture, UnreadableError

PICTURES_IN_A_CHUNK = 20
_CHUNKS_WAITING = 4  # for each thread: enough to keep it busy, few enough to bound memory
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
    problems: tuple[FailedPicture, ...]


class _Read(NamedTuple):
    """A picture read: its content, and its features unless they were known before.

    `opened` says whether the file had to be read to know its content.
    """

    picture: StoredPicture
    content: bytes = b""
    features: NDArray[np.float32] | None = None
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
    problems: list[FailedPicture] = []
    features: NDArray[np.float32] | None = None
    done = 0
    for chunk in _read_ahead(pictures, embedder, cache):
        readable = [one for one in chunk if not one.problem]
        problems += [FailedPicture(one.picture.file, one.problem) for one in chunk if one.problem]
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
    threads = torch.get_num_threads()
    in_a_chunk = max(1, min(PICTURES_IN_A_CHUNK, -(-len(pictures) // threads)))
    parts = (pictures[i : i + in_a_chunk] for i in range(0, len(pictures), in_a_chunk))
    pool = ThreadPoolExecutor(threads, "protorect-read", torch.set_num_threads, (1,))
    try:
        read = partial(_read_chunk, embedder=embedder, cache=cache)
        yield from map_in_order(pool, read, parts, _CHUNKS_WAITING * threads + 1)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(threads)  # threads that start later would begin with one, too


def _read_chunk(
    pictures: Sequence[StoredPicture], embedder: Embedder, cache: FeatureCache
) -> list[_Read]:
    read: list[_Read] = []
    places: list[int] = []
    decoded: list[NDArray[np.uint8]] = []
    for picture in pictures:
        one, pixels = _read(picture, embedder, cache)
        if pixels is not None:
            places.append(len(read))
            decoded.append(pixels)
        read.append(one)
    if decoded:
        for place, row in zip(places, _embedded(decoded, embedder), strict=True):
            read[place] = read[place]._replace(features=row)
    return read


def _read(
    picture: StoredPicture, embedder: Embedder, cache: FeatureCache
) -> tuple[_Read, NDArray[np.uint8] | None]:
    """A picture, and its pixels unless its features are known."""
    content = cache.known_content(picture.file) if not picture.error else None
    if content is not None and cache.has(embedder.digest, content):
        return _Read(picture, content, opened=False), None
    try:
        data = picture.read()
        content = hashlib.sha256(data).digest()
        if cache.has(embedder.digest, content):
            return _Read(picture, content), None
        return _Read(picture, content), decode(data, embedder.size, embedder.channels).pixels
    except UnreadableError as error:
        return _Read(picture, problem=str(error)), None


def _embedded(pixels: list[NDArray[np.uint8]], embedder: Embedder) -> NDArray[np.float32]:
    rows = np.ascontiguousarray(embedder(np.stack(pixels)), np.float32)
    if not np.isfinite(rows).all():
        raise DataError("the network gave features that are not finite numbers.")
    return rows


def _features(
    read: Sequence[_Read], embedder: Embedder, cache: FeatureCache
) -> NDArray[np.float32]:
    """Features (n, dim) of a chunk, with those from the cache; the others go into it."""
    new = {one.content: one.features for one in read if one.features is not None}
    asked = [one.content for one in read if one.content not in new]
    known = cache.find(embedder.digest, asked) if asked else {}
    lost = {c: one.picture for one in read if (c := one.content) not in known and c not in new}
    if lost:  # the rare features that the cache has given up since it was asked
        again = _embedded([_pixels(picture, embedder) for picture in lost.values()], embedder)
        new |= dict(zip(lost, again, strict=True))
    known |= new
    opened = [(one.picture.file, one.content) for one in read if one.opened]
    if opened:
        cache.keep(embedder.digest, new.items(), opened)
    lengths = {len(row) for row in known.values()}
    if len(lengths) > 1:
        raise DataError(f"the network gave features of several lengths: {sorted(lengths)}.")
    return np.stack([known[one.content] for one in read])


def _pixels(picture: StoredPicture, embedder: Embedder) -> NDArray[np.uint8]:
    try:
        return decode(picture.read(), embedder.size, embedder.channels).pixels
    except UnreadableError as error:
        raise DataError(f"{picture.path} changed while it was read: {error}.") from error


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
