"""Ridge regression to soft labels, by a few iterations of conjugate gradients.

The directions W that minimize

    sum_i weight_i |W x_i - target_i|^2 + penalty |W|^2

are solved for class by class (Hestenes, Stiefel: "Methods of conjugate gradients for solving
linear systems", 1952). The first iteration gives the weighted sums of the samples, which are the
prototypes; the further ones remove what the classes have in common. An iteration is two products
with the samples, so that memory does not grow beyond them.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from protorect.core.unit_rows import inverse
from protorect.methods._solvers.gram import Span


class Directions(NamedTuple):
    """Directions of a span, and the cosines (tasks, ways, n) of the samples with them."""

    directions: Tensor
    inverse_norms: Tensor  # (tasks, ways, 1)
    cosines: Tensor

    def normalized(self) -> Tensor:
        """The directions, of unit length."""
        return self.directions * self.inverse_norms


def ridge(
    span: Span, targets: Tensor, weights: Tensor, penalty: float, iterations: int
) -> tuple[Directions, Directions]:
    """The prototypes, as weighted sums of the samples, and the solution of the regression.

    Targets are (tasks, ways, n), weights (tasks, 1, n), or (tasks, ways, n) for one per class. The
    samples of `span` have unit length. The solution starts from zero.
    """
    prototypes = residual = span.combine(targets * weights)
    # Beside each vector of the algorithm its products with the samples are updated.
    direction, direction_products = residual, span.products_by_class(residual)
    square = span.squared_norms(residual, direction_products)
    prototypes_inverse = inverse(square.sqrt())
    prototypes_cosines = direction_products * prototypes_inverse
    solution, solution_products = torch.zeros_like(residual), torch.zeros_like(direction_products)
    for remaining in reversed(range(iterations)):
        weighted = direction_products * weights
        curvature = (direction_products * weighted).sum(dim=-1, keepdim=True)
        curvature.add_(span.squared_norms(direction, direction_products), alpha=penalty)
        alpha = _ratio(square, curvature)
        solution.addcmul_(alpha, direction)
        solution_products.addcmul_(alpha, direction_products)
        if remaining:
            image = span.combine(weighted).add(direction, alpha=penalty)
            residual = residual.addcmul(alpha, image, value=-1)
            products = span.products_by_class(residual)
            previous, square = square, span.squared_norms(residual, products)
            beta = _ratio(square, previous)
            direction = residual.addcmul(beta, direction)
            direction_products = products.addcmul_(beta, direction_products)
    solution_inverse = inverse(span.squared_norms(solution, solution_products).sqrt())
    return (
        Directions(prototypes, prototypes_inverse, prototypes_cosines),
        Directions(solution, solution_inverse, solution_products.mul_(solution_inverse)),
    )


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """The quotient, with 0 / 0 = 0: no step where the residual is zero."""
    return numerator / denominator.clamp_min(torch.finfo(denominator.dtype).tiny)
