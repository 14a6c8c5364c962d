"""Vectorized random sampling without replacement.

The order of the random numbers defines the published episodes: it must not change.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
MANY = 64  # draws above which shuffling everything is faster than `_swap`
_BLOCK = 4_000_000  # random keys in memory at a time


def draw_distinct(
    rng: np.random.Generator, sizes: Ints, count: int, shuffle: bool | None = None
) -> Ints:
    """Draw `count` distinct numbers in random order, in row i from 0 .. sizes[i] - 1.

    Returns (rows, count); where a size is smaller than `count`, only its first `size` draws are
    meaningful. With the same `shuffle`, fewer draws are the first of more draws. To shuffle all
    numbers is faster for many draws, so by default their number decides.
    """
    if shuffle is None:
        shuffle = count > MANY
    return _shuffle(rng, sizes, count) if shuffle else _swap(rng, sizes, count)


def _swap(rng: np.random.Generator, sizes: Ints, count: int) -> Ints:
    """The first steps of a Fisher-Yates shuffle that stores only the places it has changed.

    Step i exchanges place i with a random later one. A place holds its own number unless an
    earlier step has moved another there.
    """
    places = np.empty((count, len(sizes)), np.int32)  # place that step i exchanged with place i
    moved = np.empty_like(places)  # the number that step i moved there
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
