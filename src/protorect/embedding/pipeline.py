"""From pictures to features: each thread reads, decodes and embeds a few pictures on one core.

All of these steps release Python's global interpreter lock, so all cores are busy, and no core
waits for another to finish its part of a layer.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

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


@dataclass
class _Embedding:
    """The features of one picture, or the reason why it could not be read."""

    picture: StoredPicture
    content: bytes = b""
    features: Any = None  # (dim,) float32
    pixels: Any = None  # until the features are computed
    error: str = ""
    cached: bool = False  # the features are from the cache
    opened: bool = True  # the file was read, because its content was not known


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
            embedded = [one for one in chunk if not one.error]
            _save(embedded, embedder.digest, cache)
            for one in embedded:
                if features is None:
                    features = _allocate(len(pictures), len(one.features))
                if len(one.features) != features.shape[1]:
                    lengths = sorted((len(one.features), features.shape[1]))
                    raise DataError(f"the network gave features of several lengths: {lengths}.")
                features[len(readable)] = one.features
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
    """Give a `map` that works in threads, each with `torch_threads` threads of torch."""
    before = torch.get_num_threads()
    try:
        with threads(workers, partial(torch.set_num_threads, torch_threads)) as mapper:
            yield mapper
    finally:
        torch.set_num_threads(before)  # else later threads would start with the workers' number


def _embed_chunk(
    pictures: Sequence[StoredPicture], embedder: Embedder, cache: FeatureCache
) -> list[_Embedding]:
    chunk = [_look_up(picture, embedder, cache) for picture in pictures]
    new = [one for one in chunk if one.pixels is not None]
    if new:
        pixels = np.stack([one.pixels for one in new])
        features = np.ascontiguousarray(embedder(pixels), np.float32)
        if not np.isfinite(features).all():
            raise DataError("the network gave features that are not finite numbers.")
        for one, row in zip(new, features, strict=True):
            one.features, one.pixels = row, None
    return chunk


def _look_up(picture: StoredPicture, embedder: Embedder, cache: FeatureCache) -> _Embedding:
    """A picture with its features if they are in the cache, else with its pixels."""
    content = None if picture.error else cache.known_content(picture.file)
    features = None if content is None else cache.get(embedder.digest, content)
    if content is not None and features is not None:
        return _Embedding(picture, content, features, cached=True, opened=False)
    try:
        data = picture.read()
        content = hashlib.sha256(data).digest()
        features = cache.get(embedder.digest, content)
        if features is not None:
            return _Embedding(picture, content, features, cached=True)
        decoded = decode(data, embedder.size, embedder.channels)
        return _Embedding(picture, content, pixels=decoded.pixels)
    except UnreadableError as error:
        return _Embedding(picture, error=str(error))


def _save(chunk: Sequence[_Embedding], network: str, cache: FeatureCache) -> None:
    cache.put(
        network,
        [(one.content, one.features) for one in chunk if not one.cached],
        [(one.picture.file, one.content) for one in chunk if one.opened],
    )
    cache.mark_used(network, [one.content for one in chunk if one.cached])


def _allocate(rows: int, dim: int) -> NDArray[Any]:
    """A new array, memory-mapped from a temporary file if it is large."""
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
            f"no space in {tempfile.gettempdir()} for {length / 1e9:.1f} GB of features: "
            f"{error.strerror}. Set TMPDIR to another folder."
        ) from error
