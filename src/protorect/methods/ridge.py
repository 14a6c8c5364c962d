"""Ridge regression to the one-hot labels, in closed form.

Luca Bertinetto, Joao F. Henriques, Philip H. S. Torr, Andrea Vedaldi: "Meta-learning with
differentiable closed-form solvers" (R2-D2), ICLR 2019, without their training: a linear map with a
bias from normalised features to one-hot labels, solved in as many unknowns as there are support
samples, not dimensions (their use of Woodbury's identity). Their penalty comes with the network
that is trained around it (50, on features of any length), and their scale and offset of the output
change no prediction; on features of length one the default penalty is 1.

Assumes that the support holds the classes in about equal numbers: the fit leans to a class with
more samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect._utils.parameters import check_number
from protorect.core.functional import Features, membership
from protorect.core.unit_rows import UnitRows


@dataclass(frozen=True)
class RidgeOptions:
    """The choices of the regression.

    Parameters
    ----------
    penalty
        What the squared weights are multiplied by, lambda.
    """

    penalty: float = 1.0

    def __post_init__(self) -> None:
        check_number("penalty", self.penalty, 1e-6, 1e6)


def ridge(
    support: Features, labels: Tensor, query: Features, ways: int, options: RidgeOptions
) -> Tensor:
    """What the regression answers for each query and class, (tasks, n_query, ways)."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    # In float64: a small penalty leaves the system of support samples that look alike all but
    # singular. It is small beside the features.
    system = support.cosines_with(support).double() + 1  # the bias is a feature that is always 1
    system.diagonal(dim1=-2, dim2=-1).add_(options.penalty)
    targets = membership(labels, ways).to(system.dtype).expand(*system.shape[:-1], ways)
    shares = torch.cholesky_solve(targets, torch.linalg.cholesky(system))
    shares = shares.to(support.scale.dtype)  # (tasks, n_support, ways)
    bias = shares.sum(dim=-2, keepdim=True)
    return query.products(support.weighted_sum(shares)).add_(bias)
