"""Multinomial logistic regression on the normalized support.

Yonglong Tian, Yue Wang, Dilip Krishnan, Joshua B. Tenenbaum, Phillip Isola: "Rethinking Few-Shot
Image Classification: a Good Embedding Is All You Need?", ECCV 2020. As there it is scikit-learn's
`LogisticRegression` with its defaults, on unit-length features: squared weights are penalized,
biases are not, C = 1.

Assumes the same class proportions in support and queries: the biases learn them.
"""

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import membership
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.newton import fit_logistic
from protorect.methods.interface import Task
from protorect.methods.method import register
from protorect.methods.rules import LinearRule


class LogisticOptions(Parameters):
    """Options of the regression."""

    c: float = parameter(1.0, "scikit-learn's C, the weight of the likelihood.", minimum=1e-6)


@register(
    "logistic",
    LogisticOptions(),
    "inductive",
    "logistic regression",
    tuned_on="nothing: scikit-learn's C = 1",
)
def logistic(task: Task, options: LogisticOptions) -> LinearRule:
    """Logits."""
    support = UnitRows.of(task.support)
    cosines = support.cosines_with(support).double()  # (tasks, n_support, n_support)
    targets = membership(task.labels, task.ways).to(cosines.dtype)
    targets = targets.expand(*cosines.shape[:-1], task.ways)
    coefficients, bias = fit_logistic(cosines, targets, options.c)
    weights = support.weighted_sum(coefficients.to(support.dtype))
    return LinearRule(weights, bias.squeeze(-2).to(support.dtype))
