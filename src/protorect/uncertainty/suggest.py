"""Which samples to label next."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

_SAME = 0.95  # cosine from which on two samples are nearly the same
_MOST = 20_000  # rows that a diverse choice is made from, evenly spaced
_KNOWN, _AT_ONCE = 4096, 512  # known rows that they are compared with, likewise, and in blocks


@torch.inference_mode()
def diverse_order(rows: Tensor, count: int, known: Tensor | None = None) -> NDArray[np.int64]:
    """Places of `count` rows (n, dim) that differ: each is the farthest from all before it.

    The first is the farthest from the `known` rows (k, dim) or, without any, the one nearest to the
    mean (farthest-first traversal, Gonzalez 1985, which covers the samples within twice the
    smallest possible radius).
    """
    step = max(1, -(-len(rows) // _MOST))
    samples = normalize(rows[::step], dim=-1)
    chosen: list[int] = []
    nearest = torch.full((len(samples),), -2.0)
    if known is None or not len(known):
        first = samples @ samples.mean(dim=0)
    else:
        some = normalize(known[:: -(-len(known) // _KNOWN)], dim=-1)
        for block in torch.split(some, _AT_ONCE):
            nearest = torch.maximum(nearest, (samples @ block.T).amax(dim=1))
        first = -nearest
    while len(chosen) < min(count, len(samples)):
        chosen.append(int(nearest.argmin() if chosen else first.argmax()))
        nearest = torch.maximum(nearest, samples @ samples[chosen[-1]])
        nearest[chosen[-1]] = torch.inf
    return np.array(chosen, np.int64) * step


@torch.inference_mode()
def without_near_duplicates(rows: Tensor) -> NDArray[np.int64]:
    """Places of rows (n, dim) in their order, those nearly the same as an earlier one last."""
    samples = normalize(rows, dim=-1)
    alike = (samples @ samples.T > _SAME).numpy()
    first: list[int] = []
    later: list[int] = []
    for place, row in enumerate(alike):
        (later if row[first].any() else first).append(place)
    return np.array(first + later, np.int64)
