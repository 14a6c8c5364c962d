"""Ridge regression of a pile to soft labels, by a few steps of conjugate gradients.

The directions W that minimise

    sum_i weight_i |W x_i - target_i|^2 + penalty |W|^2

are solved for class by class (Hestenes, Stiefel: "Methods of conjugate gradients for solving
linear systems", 1952). The first step gives the weighted sums of the samples, which are the
prototypes; the further ones take out what the classes have in common. A step is two products with
the samples, whatever their number and dimensions, so that a pile of any size has room.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from protorect.unitrows import UnitRows


class Fit(NamedTuple):
    """Samples, what is to be answered for each, and how much it counts."""

    samples: UnitRows
    targets: Tensor  # (tasks, n, ways)
    weights: Tensor  # (tasks, n, 1)


def ridge_directions(fits: list[Fit], penalty: float, steps: int) -> Tensor:
    """Directions (tasks, ways, dim) for all the samples together, after so many steps from zero."""
    residual = _summed([fit.samples.weighted_sum(fit.targets * fit.weights) for fit in fits])
    directions = torch.zeros_like(residual)
    step, square = residual, _squares(residual)
    for left in reversed(range(steps)):
        answers = [fit.samples.products(step) for fit in fits]
        weighted = [a * fit.weights for fit, a in zip(fits, answers, strict=True)]
        bend = _summed([(a * w).sum(dim=-2) for a, w in zip(answers, weighted, strict=True)])
        bend = bend.unsqueeze(-1).add_(_squares(step), alpha=penalty)
        length = _ratio(square, bend)
        directions.addcmul_(length, step)
        if left:
            pulls = [fit.samples.weighted_sum(w) for fit, w in zip(fits, weighted, strict=True)]
            image = _summed(pulls).add_(step, alpha=penalty)
            residual = residual.addcmul(length, image, value=-1)
            before, square = square, _squares(residual)
            step = residual.addcmul(_ratio(square, before), step)
    return directions


def _summed(parts: list[Tensor]) -> Tensor:
    total, *others = parts
    for part in others:
        total = total.add_(part)
    return total


def _squares(directions: Tensor) -> Tensor:
    return directions.square().sum(dim=-1, keepdim=True)


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """0 / 0 is 0: where nothing is left to be answered, no step is taken."""
    return part / whole.clamp_min(torch.finfo(whole.dtype).tiny)
