"""From pictures to features: each thread reads, decodes and embeds a few pictures on one core.

All of these steps release Python's global interpreter lock, so all cores are busy, and no core
waits for another to finish its part of a layer.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.parallel import threads
from protorect._utils.progress import Progress
from protorect.embedding.cache import FeatureCache
from protorect.embedding.sources import Embedder
from protorect.errors import DataError
from protorect.images.decode import decode
from protorect.images.find import FailedPicture
from protorect.images.stored import StoredPicture, UnreadableError

PICTURES_PER_BLOCK = 20
ROWS_PER_BLOCK = 64  # of an array: mostly small pictures, which take less time each
LARGEST_IN_MEMORY = 2**30  # bytes of features; more are mapped from a temporary file
PicturesToEmbed = Sequence[StoredPicture] | NDArray[np.uint8]  # or (n, height, width, channels)


class Block(NamedTuple):
    """Consecutive pictures with their features."""

    pictures: range  # their positions
    features: NDArray[np.float32]  # (n, dim) of those that could be read
    digests: Sequence[bytes]  # SHA-256 of each picture's file, b"" if that could not be read
    problems: Mapping[int, str]  # why a picture could not be read, by its position


@dataclass(frozen=True, eq=False)
class Embedded:
    """The pictures that could be read, in the given order, with their features."""

    pictures: tuple[StoredPicture, ...]
    features: NDArray[np.float32]  # (n, dim)
    digests: tuple[bytes, ...]  # SHA-256 of each picture's file
    problems: tuple[FailedPicture, ...]  # pictures that could not be read


def embed_pictures(
    pictures: Sequence[StoredPicture],
    embedder: Embedder,
    cache: FeatureCache,
    progress: Progress | None = None,
) -> Embedded:
    """Features of pictures; those in the cache are not computed again."""
    count = len(pictures)
    readable: list[int] = []
    digests: list[bytes] = []
    problems: list[FailedPicture] = []
    features = np.empty((0, 0), np.float32)
    embed_block = partial(embed_at, pictures, embedder, cache)
    size = max(min(PICTURES_PER_BLOCK, -(-count // torch.get_num_threads())), embedder.block)
    with embedded_blocks(embed_block, range(count), max(1, size)) as blocks:
        for block in blocks:
            if not len(features) and len(block.features):
                features = _allocate(count, block.features.shape[1])
            if len(block.features):
                check_lengths(features.shape[1], block.features.shape[1])
                features[len(readable) :][: len(block.features)] = block.features
            for position, digest in zip(block.pictures, block.digests, strict=True):
                if position in block.problems:
                    file, reason = pictures[position].file, block.problems[position]
                    problems.append(FailedPicture(file, reason))
                else:
                    readable.append(position)
                    digests.append(digest)
            if progress is not None:
                progress(block.pictures.stop, count)
    read = tuple(pictures[position] for position in readable)
    return Embedded(read, features[: len(read)], tuple(digests), tuple(problems))


@contextmanager
def embedded_blocks(
    embed_block: Callable[[range], Block],
    pictures: range,
    size: int,
    workers: int | None = None,
) -> Iterator[Iterator[Block]]:
    """Embed pictures, `size` at a time; give an iterator over the blocks in order.

    By default there are as many threads as torch uses. Each works with one thread of torch, and
    all together are at most a few blocks ahead of the iterator.
    """
    blocks = (pictures[start : start + size] for start in range(0, len(pictures), size))
    before = torch.get_num_threads()
    try:
        with threads(workers or before, partial(torch.set_num_threads, 1)) as map_blocks:
            yield map_blocks(embed_block, blocks)
    finally:
        torch.set_num_threads(before)  # else later threads would start with the workers' number


def embed_at(
    pictures: PicturesToEmbed, embedder: Embedder, cache: FeatureCache, positions: range
) -> Block:
    """Embed the pictures at these positions; files are read and decoded if not in the cache."""
    if isinstance(pictures, np.ndarray):
        images = pictures[positions.start : positions.stop]
        return Block(positions, _compute(images, embedder), (), {})
    found = [_look_up(pictures[position], embedder, cache) for position in positions]
    new = [one for one in found if one.pixels is not None]
    if new:
        computed = _compute(np.stack([one.pixels for one in new]), embedder)
        for one, row in zip(new, computed, strict=True):
            one.features = row
    _save(found, embedder.digest, cache)
    rows = [one.features[None] for one in found if not one.error]
    check_lengths(*(row.shape[1] for row in rows))
    return Block(
        positions,
        np.concatenate(rows) if rows else np.empty((0, 0), np.float32),
        [one.digest for one in found],
        {position: one.error for position, one in zip(positions, found, strict=True) if one.error},
    )


@dataclass
class _Picture:
    """A picture with its features, its pixels, or the reason why it could not be read."""

    file: str
    digest: bytes = b""
    features: Any = None  # (dim,) float32
    pixels: Any = None  # if the features are not in the cache
    error: str = ""
    opened: bool = True  # the file was read, because its digest was not known


def _look_up(picture: StoredPicture, embedder: Embedder, cache: FeatureCache) -> _Picture:
    """A picture with its features if they are in the cache, else with its pixels."""
    file = "" if picture.error or picture.in_archive else picture.file
    digest = cache.known_digest(file) if file else None
    features = None if digest is None else cache.get(embedder.digest, digest)
    if digest is not None and features is not None:
        return _Picture(file, digest, features, opened=False)
    digest = b""
    try:
        with picture.content() as data:
            digest = hashlib.sha256(data).digest()
            features = cache.get(embedder.digest, digest)
            if features is not None:
                return _Picture(file, digest, features)
            decoded = decode(data, embedder.size, embedder.channels)
            return _Picture(file, digest, pixels=decoded.pixels)
    except UnreadableError as error:
        return _Picture(file, digest, error=str(error))


def _compute(pixels: NDArray[np.uint8], embedder: Embedder) -> NDArray[np.float32]:
    features = np.ascontiguousarray(embedder(pixels), np.float32)
    if not np.isfinite(features).all():
        raise DataError(
            f"{embedder.origin['backbone']} gave features that are not finite numbers; use another "
            "network."
        )
    return features


def check_lengths(*lengths: int) -> None:
    """Raise DataError if features have different lengths."""
    if len(set(lengths)) > 1:
        raise DataError(f"the network gave features of several lengths: {sorted(set(lengths))}.")


def _save(pictures: Sequence[_Picture], network: str, cache: FeatureCache) -> None:
    """Write to the cache what it did not have."""
    readable = [one for one in pictures if not one.error]
    cache.put(
        network,
        [(one.digest, one.features) for one in readable if one.pixels is not None],
        [(one.file, one.digest) for one in readable if one.opened and one.file],
    )
    cache.mark_used(network, [one.digest for one in readable if one.pixels is None])


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
