"""The accuracy to expect from calibrated probabilities, and exact intervals of counted ones."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv  # scipy.stats takes half a second to import

_Z = 1.959964  # of a 95 % interval


def expected_accuracy(
    probabilities: NDArray[np.float32], checked: int, examples: int
) -> tuple[float, float, float] | None:
    """Expected accuracy of labels with its 95 % interval; None without any label.

    `probabilities` are those of the unchecked labels; `checked` labels are right. The
    interval has two parts: the labels are right by chance, and the calibration comes from
    `examples` held-out examples, which cannot be more precise than a share counted on so many.
    """
    total = len(probabilities) + checked
    if not total:
        return None
    p = probabilities.astype(np.float64)
    value = float((p.sum() + checked) / total)
    if not len(p):
        return value, value, value
    mean = float(p.mean())
    effective = 1 / (
        1 / max(examples, 1) + float((p * (1 - p)).mean()) / len(p) / max(mean * (1 - mean), 1e-9)
    )
    low, high = wilson_interval(mean, effective)
    # A label is right or wrong: half a label is the correction for continuity (Yates 1934).
    low, high = max(0.0, low - 0.5 / len(p)), min(1.0, high + 0.5 / len(p))
    share = len(p) / total
    return value, 1 - share * (1 - low), 1 - share * (1 - high)


def wilson_interval(share: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share that was counted on n samples (Wilson 1927)."""
    center = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * (share * (1 - share) / n + _Z**2 / (4 * n**2)) ** 0.5
    return max(0.0, center - half), min(1.0, center + half)


def binomial_interval(right: int, n: int) -> tuple[float, float]:
    """The exact 95 % interval of a share, `right` of `n` (Clopper, Pearson 1934).

    >>> [round(bound, 4) for bound in binomial_interval(49, 50)]
    [0.8935, 0.9995]
    """
    low = 0.0 if right == 0 else float(betaincinv(right, n - right + 1, 0.025))
    high = 1.0 if right == n else float(betaincinv(right + 1, n - right, 0.975))
    return low, high
