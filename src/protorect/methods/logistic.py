"""Multinomial logistic regression on the normalized support.

Yonglong Tian, Yue Wang, Dilip Krishnan, Joshua B. Tenenbaum, Phillip Isola: "Rethinking Few-Shot
Image Classification: a Good Embedding Is All You Need?", ECCV 2020. As there it is scikit-learn's
`LogisticRegression` with its defaults, on unit-length features: squared weights are penalized,
biases are not, C = 1.

Assumes the same class proportions in support and queries: the biases learn them.
"""

from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import Features, membership
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.newton import fit_logistic
from protorect.methods.method import register


class LogisticOptions(Parameters):
    """Options of the regression."""

    c: float = parameter(1.0, "scikit-learn's C, the weight of the likelihood.", minimum=1e-6)


@register("logistic", LogisticOptions(), "inductive", "logistic regression")
def logistic(
    support: Features, labels: Tensor, query: Features, ways: int, options: LogisticOptions
) -> Tensor:
    """Logits of the queries, (tasks, n_query, ways)."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    cosines = support.cosines_with(support).double()  # (tasks, n_support, n_support)
    targets = membership(labels, ways).to(cosines.dtype).expand(*cosines.shape[:-1], ways)
    coefficients, bias = fit_logistic(cosines, targets, options.c)
    dtype = query.scale.dtype
    weights = support.weighted_sum(coefficients.to(dtype))
    return query.products(weights).add_(bias.to(dtype))
