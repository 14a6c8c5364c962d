"""Means with 95 % confidence intervals."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

NORMAL_95 = 1.959963984540054  # two-sided 95 % quantile of the normal distribution


class Estimate(NamedTuple):
    """A mean and the half-width of its 95 % confidence interval (NaN for a single value)."""

    mean: float
    ci95: float


def mean_interval(values: ArrayLike) -> Estimate:
    """Mean of independent values (n,) with its 95 % confidence interval."""
    values = np.asarray(values, dtype=np.float64)
    if values.size < 2:
        return Estimate(float(values.mean()), float("nan"))
    return Estimate(
        float(values.mean()), NORMAL_95 * float(values.std(ddof=1)) / float(np.sqrt(values.size))
    )


def paired_difference(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Mean of first - second over the same episodes, (n,) and (n,), with its own interval.

    Episodes differ more than methods do, so it is narrower than the two single intervals suggest.
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(
            f"values of the same episodes are needed, got {first.shape} and {second.shape}"
        )
    return mean_interval(first - second)
