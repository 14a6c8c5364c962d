"""Multinomial logistic regression on the normalised support.

Yonglong Tian, Yue Wang, Dilip Krishnan, Joshua B. Tenenbaum, Phillip Isola: "Rethinking Few-Shot
Image Classification: a Good Embedding Is All You Need?", ECCV 2020. As there it is scikit-learn's
`LogisticRegression` with its defaults, on features of length one: squared weights are penalised,
biases are not, C = 1.

Assumes that the support holds the classes in the proportions to be expected: the biases learn them.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from protorect._utils.parameters import check_number
from protorect.core.functional import Features, membership
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.newton import logistic_fit


@dataclass(frozen=True)
class LogisticOptions:
    """The choices of the regression.

    Parameters
    ----------
    c
        What the likelihood weighs against the squared weights, scikit-learn's C.
    """

    c: float = 1.0

    def __post_init__(self) -> None:
        check_number("c", self.c, 1e-6, 1e6)


def logistic(
    support: Features, labels: Tensor, query: Features, ways: int, options: LogisticOptions
) -> Tensor:
    """Logits of each query and class, (tasks, n_query, ways)."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    cosines = support.cosines_with(support).double()  # (tasks, n_support, n_support)
    targets = membership(labels, ways).to(cosines.dtype).expand(*cosines.shape[:-1], ways)
    shares, bias = logistic_fit(cosines, targets, options.c)
    dtype = query.scale.dtype
    return query.products(support.weighted_sum(shares.to(dtype))).add_(bias.to(dtype))
