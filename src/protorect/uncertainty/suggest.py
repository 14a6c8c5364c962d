"""Which samples to label next."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from protorect.core.unit_rows import evenly_spaced

_DUPLICATE_COSINE = 0.95  # above which two samples are nearly the same
_MAX_CANDIDATES = 20_000  # rows that a diverse choice is made from, evenly spaced
_MAX_KNOWN = 4096  # known rows that they are compared with, evenly spaced
_KNOWN_PER_BLOCK = 512  # of which so many are compared at once


@torch.inference_mode()
def diverse_order(rows: Tensor, count: int, known: Tensor | None = None) -> NDArray[np.int64]:
    """Positions of `count` rows (n, dim) that differ: each is the farthest from all before it.

    The first is the farthest from the `known` rows (k, dim) or, without any, the one nearest to the
    mean (farthest-first traversal, Gonzalez 1985, which covers the samples within twice the
    smallest possible radius).
    """
    searched = evenly_spaced(len(rows), _MAX_CANDIDATES)
    samples = normalize(rows[searched], dim=-1)
    chosen: list[int] = []
    nearest = torch.full((len(samples),), -2.0)
    if known is None or not len(known):
        first = samples @ samples.mean(dim=0)
    else:
        some = normalize(known[evenly_spaced(len(known), _MAX_KNOWN)], dim=-1)
        for block in torch.split(some, _KNOWN_PER_BLOCK):
            nearest = torch.maximum(nearest, (samples @ block.T).amax(dim=1))
        first = -nearest
    while len(chosen) < min(count, len(samples)):
        chosen.append(int(nearest.argmin() if chosen else first.argmax()))
        nearest = torch.maximum(nearest, samples @ samples[chosen[-1]])
        nearest[chosen[-1]] = torch.inf
    positions: NDArray[np.int64] = np.array(chosen, np.int64) * searched.step
    return positions


@torch.inference_mode()
def near_duplicates_last(rows: Tensor) -> NDArray[np.int64]:
    """Positions of rows (n, dim) in their order, those nearly the same as an earlier one last."""
    samples = normalize(rows, dim=-1)
    alike = (samples @ samples.T > _DUPLICATE_COSINE).numpy()
    first: list[int] = []
    later: list[int] = []
    for position, row in enumerate(alike):
        (later if row[first].any() else first).append(position)
    return np.array(first + later, np.int64)
