"""Ridge regression to the one-hot labels, in closed form.

Luca Bertinetto, Joao F. Henriques, Philip H. S. Torr, Andrea Vedaldi: "Meta-learning with
differentiable closed-form solvers" (R2-D2), ICLR 2019, without their training: a linear map with a
bias from normalized features to one-hot labels, solved in as many unknowns as there are support
samples, not dimensions (their use of Woodbury's identity). Their scale and offset of the output
change no prediction.

Their lambda is 50, and not comparable: it is fixed while the network around it is trained, which
sets the length of the features; and they divide features and labels by the root of the number n of
support samples, so that in the sum of squares minimized here it is 50 n. On unit-length features
50 n would leave class means only; the default of 1 does not depend on n. `docs/tuning.md` has the
accuracy of other values on validation classes.

Assumes about as many support samples in every class: the fit is biased to a class with more.
"""

import torch

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import membership
from protorect.core.unit_rows import UnitRows
from protorect.methods.interface import Task
from protorect.methods.method import register
from protorect.methods.rules import LinearRule


class RidgeOptions(Parameters):
    """Options of the regression."""

    penalty: float = parameter(1.0, "lambda, the weight of the squared weights.", minimum=1e-6)


@register(
    "ridge",
    RidgeOptions(),
    "inductive",
    "ridge regression to one-hot labels",
    tuned_on="nothing: the penalty is 1",
)
def ridge(task: Task, options: RidgeOptions) -> LinearRule:
    """Output of the regression."""
    support = UnitRows.of(task.support)
    # In float64: with a small penalty and similar support samples the system is nearly singular.
    system = support.cosines_with(support).double() + 1  # the bias is a feature that is always 1
    system.diagonal(dim1=-2, dim2=-1).add_(options.penalty)
    targets = membership(task.labels, task.ways).to(system.dtype)
    targets = targets.expand(*system.shape[:-1], task.ways)
    coefficients = torch.cholesky_solve(targets, torch.linalg.cholesky(system))
    coefficients = coefficients.to(support.dtype)  # (tasks, n_support, ways)
    return LinearRule(support.weighted_sum(coefficients), coefficients.sum(dim=-2))
