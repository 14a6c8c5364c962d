"""From pictures to features: each thread takes a few pictures all the way, on one core.

Reading, hashing, decoding and the network release Python's global lock, so all cores are busy, and
no core waits for another to finish its part of a layer.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.parallel import Mapper, threads
from protorect._utils.progress import Progress
from protorect.embedding.cache import FeatureCache
from protorect.embedding.sources import Embedder
from protorect.errors import DataError
from protorect.images.decode import decode
from protorect.images.find import FailedPicture
from protorect.images.stored import StoredPicture, UnreadableError

PICTURES_PER_CHUNK = 20
LARGEST_IN_MEMORY = 2**30  # bytes of features; more are mapped from a temporary file


@dataclass(frozen=True)
class Embedded:
    """The pictures that could be read, in the given order, with their features."""

    pictures: tuple[StoredPicture, ...]
    features: NDArray[np.float32]  # (n, dim)
    contents: tuple[bytes, ...]  # SHA-256 of each picture's file
    problems: tuple[FailedPicture, ...]  # pictures that could not be read


class _Embedding(NamedTuple):
    """The features of one picture, or the reason why there are none."""

    picture: StoredPicture
    content: bytes = b""
    features: NDArray[np.float32] | None = None
    error: str = ""
    cached: bool = False  # the features are from the cache
    opened: bool = True  # the file had to be read to know its content


def embed_pictures(
    pictures: Sequence[StoredPicture],
    embedder: Embedder,
    cache: FeatureCache,
    progress: Progress | None = None,
) -> Embedded:
    """Features of pictures; those in the cache are not computed again."""
    workers = torch.get_num_threads()
    size = max(1, min(PICTURES_PER_CHUNK, -(-len(pictures) // workers)))
    chunks = (pictures[start : start + size] for start in range(0, len(pictures), size))
    embed_chunk = partial(_embed_chunk, embedder=embedder, cache=cache)
    readable: list[StoredPicture] = []
    contents: list[bytes] = []
    problems: list[FailedPicture] = []
    features: NDArray[np.float32] | None = None
    done = 0
    with worker_threads(workers, torch_threads=1) as map_chunks:
        for chunk in map_chunks(embed_chunk, chunks):
            problems += [FailedPicture(one.picture.file, one.error) for one in chunk if one.error]
            new = [one for one in chunk if not one.error]
            _save(new, embedder.digest, cache)
            for one in new:
                row: Any = one.features
                if features is None:
                    features = _allocate(len(pictures), len(row))
                if len(row) != features.shape[1]:
                    lengths = sorted((len(row), features.shape[1]))
                    raise DataError(f"the network gave features of several lengths: {lengths}.")
                features[len(readable)] = row
                readable.append(one.picture)
                contents.append(one.content)
            done += len(chunk)
            if progress is not None:
                progress(done, len(pictures))
    if features is None:
        features = np.empty((0, 0), np.float32)
    return Embedded(tuple(readable), features[: len(readable)], tuple(contents), tuple(problems))


@contextmanager
def worker_threads(workers: int, torch_threads: int) -> Iterator[Mapper]:
    """Give a `map` that works in this many threads, each of which uses `torch_threads` of torch."""
    before = torch.get_num_threads()
    try:
        with threads(workers, partial(torch.set_num_threads, torch_threads)) as mapper:
            yield mapper
    finally:
        torch.set_num_threads(before)  # else later threads would start with the workers' number


def _embed_chunk(
    pictures: Sequence[StoredPicture], embedder: Embedder, cache: FeatureCache
) -> list[_Embedding]:
    chunk: list[_Embedding] = []
    pixels: dict[int, NDArray[np.uint8]] = {}
    for place, picture in enumerate(pictures):
        one, decoded = _look_up(picture, embedder, cache)
        chunk.append(one)
        if decoded is not None:
            pixels[place] = decoded
    if pixels:
        features = np.ascontiguousarray(embedder(np.stack(list(pixels.values()))), np.float32)
        if not np.isfinite(features).all():
            raise DataError("the network gave features that are not finite numbers.")
        for place, row in zip(pixels, features, strict=True):
            chunk[place] = chunk[place]._replace(features=row)
    return chunk


def _look_up(
    picture: StoredPicture, embedder: Embedder, cache: FeatureCache
) -> tuple[_Embedding, NDArray[np.uint8] | None]:
    """The features of a picture if they are in the cache, else its pixels."""
    content = None if picture.error else cache.known_content(picture.file)
    features = None if content is None else cache.get(embedder.digest, content)
    if content is not None and features is not None:
        return _Embedding(picture, content, features, cached=True, opened=False), None
    try:
        data = picture.read()
        content = hashlib.sha256(data).digest()
        features = cache.get(embedder.digest, content)
        if features is not None:
            return _Embedding(picture, content, features, cached=True), None
        return _Embedding(picture, content), decode(data, embedder.size, embedder.channels).pixels
    except UnreadableError as error:
        return _Embedding(picture, error=str(error)), None


def _save(chunk: Sequence[_Embedding], network: str, cache: FeatureCache) -> None:
    cache.put(
        network,
        [(one.content, one.features) for one in chunk if not one.cached],
        [(one.picture.file, one.content) for one in chunk if one.opened],
    )
    cache.mark_used(network, [one.content for one in chunk if one.cached])


def _allocate(rows: int, dim: int) -> NDArray[Any]:
    """An array to fill; a large one is in a file, so that it need not fit into memory."""
    length = rows * dim * 4
    if length <= LARGEST_IN_MEMORY:
        return np.empty((rows, dim), np.float32)
    try:
        with tempfile.TemporaryFile(prefix="protorect-") as file:
            if hasattr(os, "posix_fallocate"):  # writing to a mapped file crashes on a full disk
                os.posix_fallocate(file.fileno(), 0, length)
            return np.memmap(file, np.float32, "w+", shape=(rows, dim))
    except OSError as error:
        raise DataError(
            f"no room in {tempfile.gettempdir()} for {length / 1e9:.1f} GB of features: "
            f"{error.strerror}. Name another folder in TMPDIR."
        ) from error
