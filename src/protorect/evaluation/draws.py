"""Random draws without replacement, many at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
MANY = 64  # draws from which on shuffling everything beats remembering what was touched
_BLOCK = 4_000_000  # random keys held at a time


def draw_distinct(
    rng: np.random.Generator, sizes: Ints, count: int, shuffle: bool | None = None
) -> Ints:
    """Draw `count` distinct numbers below each size, in random order.

    Where a size is smaller than `count`, only its first `size` draws are meaningful.

    Parameters
    ----------
    rng
        The source of randomness.
    sizes
        (rows,), how many numbers each row draws from.
    count
        How many to draw. With the same `shuffle`, fewer draws are the first of more draws.
    shuffle
        Whether to shuffle all numbers, which is faster for many draws; decided here if None.

    Returns
    -------
    ndarray
        (rows, count)
    """
    if shuffle is None:
        shuffle = count > MANY
    return _shuffle(rng, sizes, count) if shuffle else _swap(rng, sizes, count)


def _swap(rng: np.random.Generator, sizes: Ints, count: int) -> Ints:
    """The first steps of a Fisher-Yates shuffle that only remembers the places it has touched.

    Step i exchanges place i with a random later one. Any place still holds its own number unless
    an earlier step moved another there.
    """
    places = np.empty((count, len(sizes)), dtype=np.int32)  # what step i exchanged place i with
    moved = np.empty_like(places)  # the number that step i put there
    drawn = np.empty_like(places)
    for i in range(count):
        places[i] = i + rng.integers(0, np.maximum(sizes - i, 1))
        drawn[i] = places[i]
        moved[i] = i
        for j in range(i):
            np.copyto(drawn[i], moved[j], where=places[j] == places[i])
            np.copyto(moved[i], moved[j], where=places[j] == i)
    return drawn.T.astype(np.int64, order="C")


def _shuffle(rng: np.random.Generator, sizes: Ints, count: int) -> Ints:
    """Sort random keys; the order of the first `count` is a random draw."""
    largest = max(int(sizes.max()), count)
    drawn = np.empty((len(sizes), count), dtype=np.int64)
    step = max(1, _BLOCK // largest)
    for start in range(0, len(sizes), step):
        block = sizes[start : start + step]
        keys = rng.random((len(block), largest), dtype=np.float32)
        keys[np.arange(largest) >= block[:, None]] = 2.0  # behind every real key
        drawn[start : start + step] = keys.argsort(axis=1)[:, :count]
    return drawn
