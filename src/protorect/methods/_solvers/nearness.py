"""Nearness: what several methods compare, of queries to prototypes and of rows to each other."""

from __future__ import annotations

import torch
from torch import Tensor

from protorect.core.unit_rows import UnitRows

_FEW = 4


def nearness(rows: UnitRows, prototypes: Tensor) -> Tensor:
    """Minus the squared distance of each row to each prototype, but for a constant of the row.

    What is left out, the squared length of the row, is the same for all classes, so that neither
    the nearest class nor a softmax over the classes depends on it.

    Parameters
    ----------
    rows
        (tasks, n, dim)
    prototypes
        (tasks, ways, dim)

    Returns
    -------
    Tensor
        (tasks, n, ways), laid out a class at a time.
    """
    # -|x - p|^2 + |x - c|^2 = 2 x.(p - c) - (p + c).(p - c) for any c. With c amid the prototypes
    # what all features have in common is not squared, and does not drown the differences.
    centre = prototypes.mean(dim=-2, keepdim=True)
    directions = prototypes - centre  # (tasks, ways, dim)
    offsets = (directions * (prototypes + centre)).sum(dim=-1)  # (tasks, ways)
    return rows.products(directions).mul_(2).sub_(offsets.unsqueeze(-2))


def joint_cosines(support: UnitRows, query: UnitRows) -> Tensor:
    """Cosines of all samples with each other, the support first: (tasks, n, n), symmetric."""
    tasks, first = support.scale.shape
    n = first + query.scale.shape[1]
    joint = query.scale.new_empty(tasks, n, n)
    across = query.cosines_with(support).mT  # (tasks, n_support, n_query), as it lies in memory
    joint[:, :first, :first] = support.cosines_with(support)
    joint[:, :first, first:] = across
    joint[:, first:, :first] = across.mT
    joint[:, first:, first:] = query.cosines_with(query).mT
    return joint


def nearest_others(cosines: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For each sample the `count` others with the highest cosines, or all there are.

    Parameters
    ----------
    cosines
        (tasks, n, n), of the samples with each other. The diagonal is lost.

    Returns
    -------
    highest, places
        (tasks, n, count), the highest first.
    """
    cosines.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    count = min(count, cosines.shape[-1] - 1)
    if count > _FEW:
        best = cosines.topk(count, dim=-1)
        return best.values, best.indices
    highest = cosines.new_empty(*cosines.shape[:-1], count)
    places = torch.empty_like(highest, dtype=torch.long)
    for i in range(count):  # a few maxima are found faster one by one than by a partial sort
        found = cosines.max(dim=-1, keepdim=True)
        highest[..., i : i + 1], places[..., i : i + 1] = found
        cosines.scatter_(-1, found.indices, -torch.inf)
    cosines.scatter_(-1, places, highest)
    return highest, places
