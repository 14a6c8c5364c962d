"""The mean that a method subtracts from all features before it normalizes them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.unit_rows import RawRows
from protorect.errors import OptionError


def _finite_numbers(given: Any) -> tuple[float, ...]:
    try:
        numbers = torch.as_tensor(given, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        numbers = torch.empty(0)
    if numbers.ndim != 1 or not len(numbers) or not numbers.isfinite().all():
        raise OptionError(
            "base_mean must be one finite number per dimension, as `features.mean(axis=0)`."
        )
    return tuple(numbers.tolist())  # a tuple, to be hashable


class CenteringOptions(Parameters):
    """Options of methods that subtract the mean feature of the base classes."""

    base_mean: Sequence[float] | None = parameter(
        None,
        "(dim,), the mean feature of the base classes, which is subtracted. Any sequence of "
        "numbers, as `base_features.mean(axis=0)`.",
        convert=_finite_numbers,
    )

    def base_center(self, samples: RawRows) -> Tensor | None:
        """The base mean for every task, (tasks, dim), if it is given."""
        if self.base_mean is None:
            return None
        mean, dim = samples.rows.new_tensor(self.base_mean), samples.rows.shape[-1]
        if len(mean) != dim:
            raise OptionError(
                f"base_mean has {len(mean)} dimensions and the features have {dim}; "
                "take the mean of features of the same network."
            )
        return mean.expand(len(samples.rows), dim)
