"""The learning rate at any point of the training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal


def rate_at(
    epoch: float,
    points: Sequence[tuple[float, float]],
    between: Literal["hold", "linear", "cosine"],
) -> float:
    """The rate at a fractional epoch, from (epoch, rate) points in order."""
    before = max((i for i, (start, _) in enumerate(points) if start <= epoch), default=0)
    start, rate = points[before]
    if between == "hold" or before == len(points) - 1:
        return rate
    end, next_rate = points[before + 1]
    share = (epoch - start) / (end - start)
    if between == "cosine":
        share = (1 - math.cos(math.pi * share)) / 2
    return rate + share * (next_rate - rate)
