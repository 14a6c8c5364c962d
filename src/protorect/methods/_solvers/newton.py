"""Logistic regression of many tasks at once, by Newton's method on the support's Gram matrix.

The weights that minimize |W|^2 / 2 + c * loss are linear combinations of the support rows,
W = X' A. The unknowns are therefore the coefficients A (n_support, ways) and the biases, whatever
the dimension, and only the inner products K = X X' are needed. Two such points have the inner
product <A, K A'> + <b, b'>, that of their weights and biases.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_MAX_STEPS = 100
_MAX_CG_ITERATIONS = 250
_MAX_HALVINGS = 50
_TOLERANCE = 1e-8  # of the gradient's norm, relative to the start
_ROUNDING = 1e-6  # of the loss; a gradient that starts below it, as of rows of zeros, is rounding
_CG_TOLERANCE = 1e-3  # of the residual's norm in one Newton step, relative to its start


class _Point(NamedTuple):
    """Coefficients A (tasks, n, ways), biases b (tasks, 1, ways), and their logits K A + b."""

    coefficients: Tensor
    bias: Tensor
    logits: Tensor

    def add(self, step_size: Tensor, direction: "_Point") -> "_Point":
        return _Point(*(x + step_size * d for x, d in zip(self, direction, strict=True)))


def fit_logistic(gram: Tensor, targets: Tensor, c: float) -> tuple[Tensor, Tensor]:
    """Coefficients (tasks, n, ways) and biases (tasks, 1, ways) of the least penalized loss.

    `gram` are the inner products of the rows (tasks, n, n), `targets` (tasks, n, ways) one-hot, `c`
    the weight of the loss against half the squared weights.
    """
    point = _zero_like(targets)
    start = None
    for _ in range(_MAX_STEPS):
        p = torch.softmax(point.logits, dim=-1)
        gradient = _gradient(gram, point, p - targets, c)
        square = _inner(gradient, gradient)  # (tasks, 1, 1)
        start = square.clamp_min((_ROUNDING * c * len(targets[0])) ** 2) if start is None else start
        running = square > _TOLERANCE**2 * start
        if not running.any():
            break
        direction = _newton_direction(gram, p, gradient, c)
        step_size = _step_size(point, direction, _inner(gradient, direction), targets, c)
        point = point.add(torch.where(running, step_size, 0.0), direction)
    return point.coefficients, point.bias


def _zero_like(coefficients: Tensor) -> _Point:
    zero = torch.zeros_like(coefficients)
    return _Point(zero, zero[:, :1], zero)


def _gradient(gram: Tensor, point: _Point, errors: Tensor, c: float) -> _Point:
    coefficients = point.coefficients + c * errors
    bias = c * errors.sum(dim=-2, keepdim=True)
    return _Point(coefficients, bias, gram @ coefficients + bias)


def _inner(one: _Point, two: _Point) -> Tensor:
    """<A, K A'> + <b, b'>, (tasks, 1, 1)."""
    weights = (one.coefficients * (two.logits - two.bias)).sum(dim=(-2, -1), keepdim=True)
    return weights + (one.bias * two.bias).sum(dim=(-2, -1), keepdim=True)


def _newton_direction(gram: Tensor, p: Tensor, gradient: _Point, c: float) -> _Point:
    """Minus the inverse Hessian times the gradient, by conjugate gradients."""
    solution = _zero_like(gradient.coefficients)
    residual = _Point(*(-part for part in gradient))
    direction, square = residual, _inner(residual, residual)
    tolerance = _CG_TOLERANCE**2 * square
    for _ in range(_MAX_CG_ITERATIONS):
        change = p * direction.logits  # of p along the direction
        change -= p * change.sum(dim=-1, keepdim=True)
        image = _gradient(gram, direction, change, c)  # Hessian times direction
        alpha = torch.where(square > tolerance, square / _inner(direction, image), 0.0)
        solution, residual = solution.add(alpha, direction), residual.add(-alpha, image)
        previous, square = square, _inner(residual, residual)
        if not (square > tolerance).any():
            break
        beta = torch.where(previous > 0, square / previous, 0.0)
        direction = residual.add(beta, direction)
    return solution


def _step_size(
    point: _Point, direction: _Point, slope: Tensor, targets: Tensor, c: float
) -> Tensor:
    """Backtracking line search from 1 to a sufficient decrease (Armijo), (tasks, 1, 1)."""
    value = _objective(point, targets, c)
    rounding = 16 * torch.finfo(value.dtype).eps * value.abs()
    step_size = torch.ones_like(value)
    for _ in range(_MAX_HALVINGS):
        trial = _objective(point.add(step_size, direction), targets, c)
        too_long = trial > value + 1e-4 * step_size * slope + rounding
        if not too_long.any():
            break
        step_size = torch.where(too_long, step_size / 2, step_size)
    return step_size


def _objective(point: _Point, targets: Tensor, c: float) -> Tensor:
    penalty = (point.coefficients * (point.logits - point.bias)).sum(dim=(-2, -1), keepdim=True)
    loss = -(torch.log_softmax(point.logits, dim=-1) * targets).sum(dim=(-2, -1), keepdim=True)
    return penalty / 2 + c * loss
