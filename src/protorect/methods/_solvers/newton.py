"""Logistic regression of many tasks at once, by Newton's method in the span of the support.

The weights that minimise |W|^2 / 2 + c * loss are sums of the support rows, W = X' A. The unknowns
are therefore the shares A (n_support, ways) and the biases, however many dimensions there are, and
the rows X are needed through their products K = X X' only. Two such points have the inner product
<A, K A'> + <b, b'>, that of their weights and biases.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_STEPS = 100
_SOLVER_STEPS = 250
_TOLERANCE = 1e-8  # of the gradient, as a part of what it is at the start
_SOLVER_TOLERANCE = 1e-3  # each Newton step comes about so much closer


class _Point(NamedTuple):
    """Shares A (tasks, n, ways), biases b (tasks, 1, ways) and the logits K A + b they give."""

    shares: Tensor
    bias: Tensor
    logits: Tensor

    def plus(self, factor: Tensor, other: _Point) -> _Point:
        return _Point(*(one + factor * two for one, two in zip(self, other, strict=True)))


def logistic_fit(products: Tensor, targets: Tensor, c: float) -> tuple[Tensor, Tensor]:
    """The shares (tasks, n, ways) and biases (tasks, 1, ways) of least penalised loss.

    Parameters
    ----------
    products
        (tasks, n, n), of the rows with each other.
    targets
        (tasks, n, ways), one-hot.
    c
        What the loss weighs against half the squared weights.
    """
    zero = torch.zeros_like(targets)
    point = _Point(zero, zero[:, :1], zero)
    at_start = None
    for _ in range(_STEPS):
        chances = torch.softmax(point.logits, dim=-1)
        slope = _gradient(products, point, chances - targets, c)
        steepness = _inner(slope, slope)  # (tasks, 1, 1)
        at_start = steepness if at_start is None else at_start
        open_tasks = steepness > _TOLERANCE**2 * at_start
        if not open_tasks.any():
            break
        direction = _newton_direction(products, chances, slope, c)
        step = _step(point, direction, _inner(slope, direction), targets, c)
        point = point.plus(torch.where(open_tasks, step, 0.0), direction)
    return point.shares, point.bias


def _gradient(products: Tensor, point: _Point, errors: Tensor, c: float) -> _Point:
    shares, bias = point.shares + c * errors, c * errors.sum(dim=-2, keepdim=True)
    return _Point(shares, bias, products @ shares + bias)


def _inner(one: _Point, two: _Point) -> Tensor:
    """<A, K A'> + <b, b'>, (tasks, 1, 1); the logits of a point less its biases are K A'."""
    of_weights = (one.shares * (two.logits - two.bias)).sum(dim=(-2, -1), keepdim=True)
    return of_weights + (one.bias * two.bias).sum(dim=(-2, -1), keepdim=True)


def _newton_direction(products: Tensor, chances: Tensor, slope: _Point, c: float) -> _Point:
    """Minus the inverse Hessian times the slope, by conjugate gradients."""
    zero = torch.zeros_like(slope.shares)
    found = _Point(zero, zero[:, :1], zero)
    rest = _Point(*(-part for part in slope))
    towards, left = rest, _inner(rest, rest)
    enough = _SOLVER_TOLERANCE**2 * left
    for _ in range(_SOLVER_STEPS):
        change = chances * towards.logits  # of the chances, as the logits move
        change -= chances * change.sum(dim=-1, keepdim=True)
        bent = _gradient(products, towards, change, c)  # the Hessian is the slope's derivative
        far = torch.where(left > enough, left / _inner(towards, bent), 0.0)
        found, rest = found.plus(far, towards), rest.plus(-far, bent)
        before, left = left, _inner(rest, rest)
        if not (left > enough).any():
            break
        towards = rest.plus(torch.where(before > 0, left / before, 0.0), towards)
    return found


def _step(point: _Point, direction: _Point, slope: Tensor, targets: Tensor, c: float) -> Tensor:
    """How far to go, (tasks, 1, 1): all the way, or half as often as it takes to get lower."""
    here = _objective(point, targets, c)
    rounding = 16 * torch.finfo(here.dtype).eps * here.abs()
    step = torch.ones_like(here)
    for _ in range(50):
        there = _objective(point.plus(step, direction), targets, c)
        high = there > here + 1e-4 * step * slope + rounding
        if not high.any():
            break
        step = torch.where(high, step / 2, step)
    return step


def _objective(point: _Point, targets: Tensor, c: float) -> Tensor:
    squared = (point.shares * (point.logits - point.bias)).sum(dim=(-2, -1), keepdim=True)
    surprise = -(torch.log_softmax(point.logits, dim=-1) * targets).sum(dim=(-2, -1), keepdim=True)
    return squared / 2 + c * surprise
