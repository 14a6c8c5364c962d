"""SimpleShot: center, normalize, take the nearest class mean.

Yan Wang, Wei-Lun Chao, Kilian Q. Weinberger, Laurens van der Maaten: "SimpleShot: Revisiting
Nearest-Neighbor Classification for Few-Shot Learning", 2019. Their best variant, CL2N,
subtracts the mean feature of the base classes, normalizes, and takes the nearest class mean by
Euclidean distance. Episodes do not contain the base mean: give it as `base_mean` in Python, or on
the command line a feature file of the base classes as `--base`. Without it nothing is subtracted
(their L2N), or, with `center=support`, the mean of the support.

Assumes nothing about the queries. Centering on the support assumes the same number of samples in
every class, and if there are few, removes part of the differences between classes.
"""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import basic_prototypes
from protorect.core.unit_rows import RawRows
from protorect.errors import OptionError
from protorect.methods.interface import Task
from protorect.methods.method import register
from protorect.methods.rules import DistanceRule


def _finite_numbers(given: Any) -> tuple[float, ...]:
    try:
        numbers = torch.as_tensor(given, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        numbers = torch.empty(0)
    if numbers.ndim != 1 or not len(numbers) or not numbers.isfinite().all():
        raise OptionError(
            "base_mean must be one finite number per dimension, as "
            "base_features.mean(axis=0) gives."
        )
    return tuple(numbers.tolist())  # a tuple, to be hashable


class SimpleShotOptions(Parameters):
    """Options of SimpleShot."""

    center: Literal["none", "support"] = parameter(
        "none",
        'What is subtracted where no base mean is given: "none" (L2N), or the mean of the '
        '"support" features.',
        aliases=("centre",),
    )
    base_mean: Sequence[float] | None = parameter(
        None,
        "(dim,), the mean feature of the base classes, which is subtracted (CL2N). Any sequence of "
        "numbers, as `base_features.mean(axis=0)`.",
        convert=_finite_numbers,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base_mean is not None and self.center != "none":
            raise OptionError("base_mean is given and center is 'support'; give one of the two.")


@register("simpleshot", SimpleShotOptions(), "inductive", "as protonet, on normalized features")
def simpleshot(task: Task, options: SimpleShotOptions) -> DistanceRule:
    """Minus squared distances to the class means."""
    support, center = task.support, None
    if options.center == "support" or options.base_mean is not None:
        rows = RawRows.of(support)
        center = _base_mean(options.base_mean, rows) if options.base_mean else rows.mean()
        support = rows.rows - center.unsqueeze(-2)
    return DistanceRule(basic_prototypes(support, task.labels, task.ways), center)


def _base_mean(base_mean: Sequence[float], support: RawRows) -> Tensor:
    """The mean of the base classes for every task, (tasks, dim)."""
    mean, dim = support.rows.new_tensor(base_mean), support.rows.shape[-1]
    if len(mean) != dim:
        raise OptionError(
            f"base_mean has {len(mean)} dimensions and the features have {dim}; "
            "take the mean of features of the same network."
        )
    return mean.expand(len(support.rows), dim)
