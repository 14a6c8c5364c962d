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

from protorect.core.unit_rows import inverse
from protorect.methods._solvers.gram import Span


class Fitted(NamedTuple):
    """Cosines (tasks, ways, n) of the samples with the sums, and with the directions found."""

    sums: Tensor
    directions: Tensor


def fitted(span: Span, targets: Tensor, weights: Tensor, penalty: float, steps: int) -> Fitted:
    """The first step, and what so many steps from zero lead to.

    Parameters
    ----------
    span
        Of the samples, each of length one.
    targets
        (tasks, ways, n)
    weights
        (tasks, 1, n), or (tasks, ways, n) where each class has its own.
    """
    residual = span.combined(targets * weights)
    step, answers = residual, span.products(residual)  # what W gains along the step
    square = span.squares(residual, answers)
    sums = answers * inverse(square.sqrt())
    found, answered = torch.zeros_like(step), torch.zeros_like(answers)
    for left in reversed(range(steps)):
        weighted = answers * weights
        bend = (answers * weighted).sum(dim=-1, keepdim=True)
        length = _ratio(square, bend.add_(span.squares(step, answers), alpha=penalty))
        found.addcmul_(length, step)
        answered.addcmul_(length, answers)
        if left:
            image = span.combined(weighted).add(step, alpha=penalty)
            residual = residual.addcmul(length, image, value=-1)
            products = span.products(residual)
            before, square = square, span.squares(residual, products)
            onwards = _ratio(square, before)
            step = residual.addcmul(onwards, step)
            answers = products.addcmul_(onwards, answers)
    return Fitted(sums, answered.mul_(inverse(span.squares(found, answered).sqrt())))


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """0 / 0 is 0: where nothing is left to be answered, no step is taken."""
    return part / whole.clamp_min(torch.finfo(whole.dtype).tiny)
