"""Episodes as tensors, some at a time, for what needs more than predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect.evaluation.episodes import Episodes

AT_ONCE = 50


class Tasks(NamedTuple):
    """Some episodes: support (tasks, way x shot, dim), labels (way x shot,), query."""

    part: slice
    support: Tensor
    labels: Tensor
    query: Tensor


def tasks(features: NDArray[Any], episodes: Episodes, at_once: int = AT_ONCE) -> Iterator[Tasks]:
    """The episodes in their order, at most so many at once."""
    rows = torch.from_numpy(features)
    labels = torch.arange(episodes.way).repeat_interleave(episodes.shot)
    support = episodes.support.reshape(len(episodes), -1)
    for start in range(0, len(episodes), at_once):
        part = slice(start, min(start + at_once, len(episodes)))
        yield Tasks(part, rows[support[part]], labels, rows[episodes.query[part]])
