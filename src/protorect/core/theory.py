"""Lower bound of the expected cosine, and the expected accuracy as a function of Z.

A prototype is the mean of T = K + Z normalized features of its class, eq. (9). The bound of its
cosine with the samples of the class depends on two moments of the class, eq. (16):

    variance      lambda = sum over the dimensions of Var[x]
    expectation   alpha  = sum over the dimensions of E[x]^2

Normalized features have E|x|^2 = 1, so the two sum to one (less the proportion of zero rows).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect.core.unit_rows import inverse, row_norms
from protorect.errors import DataError, OptionError

Array = Tensor | NDArray[Any]
Numbers = Sequence[float] | NDArray[Any]
Curve = NDArray[np.float64]

BLOCK_VALUES = 2**20  # converted to float64 at once: 8 MB


@dataclass(frozen=True)
class ClassMoments:
    """The two moments of eq. (16), of one class or averaged over classes.

    `variance` is lambda, the summed variance of the normalized features; `expectation` is alpha,
    the squared norm of their mean.
    """

    variance: float
    expectation: float

    def __post_init__(self) -> None:
        for name in ("variance", "expectation"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise OptionError(f"{name} is {getattr(self, name)}; it must be 0 or more.")


def class_moments(features: Array, labels: Array) -> ClassMoments:
    """Moments of the normalized features, averaged over the classes.

    Features (n, dim) of any real type are normalized here; labels (n,) are whole numbers or names.
    A class with a single row has no variance: DataError. Needs memory for one block of rows and
    one sum per class (classes, dim) in float64.
    """
    codes, counts = _classes(labels, tuple(features.shape))
    sums, nonzero = _class_sums(features, codes, len(counts))
    # The mean cosine of two different samples is an unbiased estimate of E[x]^2. The plain |mean|^2
    # is too large by lambda / n: in simulated classes of two, alpha = 0.04 came out as 0.52.
    expectation = (sums.norm(dim=-1).square() - nonzero) / (counts * (counts - 1))
    # The estimate of a small class may be negative. Clipping each class would be biased (0.07 for
    # 0.04 in the same simulation), so the mean over the classes is clipped.
    total = float((nonzero / counts).mean())  # E|x|^2
    alpha = min(max(float(expectation.mean()), 0.0), total)
    return ClassMoments(variance=total - alpha, expectation=alpha)


def cosine_lower_bound(moments: ClassMoments, samples: float | Numbers) -> Curve:
    """Lower bound of E[cos(P, X)] for a prototype of T samples, eq. (16); it grows with T.

    For unit features it is exact at T = 1 (alpha) and in the limit of T (sqrt(alpha)). Between, it
    is a bound up to the first-order approximation of eq. (12): for simulated Gaussian classes it
    exceeded the true value by at most 0.014 in 2 dimensions, 0.004 in 4, 0.0002 in 32, at T = 2.

    `samples` is T, 1 or more: a number or an array, whose shape the result has.
    """
    count = np.asarray(samples, dtype=np.float64)
    if not (count >= 1).all():
        raise OptionError(f"samples is {samples}; a prototype is the mean of 1 or more.")
    alpha = moments.expectation
    norm = np.sqrt(moments.variance / count + alpha)  # sqrt(E|P|^2), eq. (15)
    return alpha / np.where(norm > 0, norm, 1.0)  # 0 where all features are zero


def accuracy_coefficient(moments: ClassMoments, accuracy_by_shot: Mapping[int, float]) -> float:
    """eta of eq. (25), from accuracies of CSPN, which has Z = 0.

    The paper takes eta from the 1-shot and the 5-shot accuracy and does not say how. Here it is the
    least-squares fit of accuracy = eta x bound(K) over the shots.

    `accuracy_by_shot` has an accuracy for each K, such as {1: 60.0, 5: 80.0}, measured on the
    features of `moments`; eta has the same unit.
    """
    if not accuracy_by_shot:
        raise OptionError("no accuracy was given; give one or more, such as {1: 60.0, 5: 80.0}.")
    accuracy = np.array(list(accuracy_by_shot.values()), dtype=np.float64)
    if not np.isfinite(accuracy).all():
        raise OptionError(f"accuracies are {dict(accuracy_by_shot)}; each must be a number.")
    bound = cosine_lower_bound(moments, list(accuracy_by_shot))
    if moments.expectation == 0:
        raise DataError(
            "the samples of a class have no direction in common (expectation 0), so no coefficient "
            "fits. Check that the labels match the rows."
        )
    return float(bound @ accuracy / (bound @ bound))


def expected_accuracy(moments: ClassMoments, eta: float, shot: int, z: float | Numbers) -> Curve:
    """Accuracy with Z pseudo-labeled samples added to K labeled ones of each class, eq. (25).

    `eta` is from `accuracy_coefficient`; the result has its unit, and is not clipped at 100 %.
    `shot` is K, 1 or more; `z` is Z, 0 or more: a number or an array, whose shape the result has.
    """
    added = np.asarray(z, dtype=np.float64)
    if not (shot >= 1 and (added >= 0).all()):
        raise OptionError(f"shot is {shot} and z is {z}; shot must be 1 or more, z 0 or more.")
    return eta * cosine_lower_bound(moments, shot + added)


def _class_sums(features: Array, codes: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Sum of the unit rows of each class (classes, dim), and number of nonzero ones (classes,)."""
    n, dim = features.shape
    sums = torch.zeros(classes, dim, dtype=torch.float64)
    nonzero = torch.zeros(classes, dtype=torch.float64)
    step = max(1, BLOCK_VALUES // dim)
    for start in range(0, n, step):
        rows, labels = _float64_copy(features[start : start + step]), codes[start : start + step]
        norms = row_norms(rows)
        if not norms.isfinite().all():
            row = start + int(norms.isfinite().logical_not().nonzero()[0])
            raise DataError(f"row {row} of the features is not finite. Remove or repair such rows.")
        sums.index_add_(0, labels, rows.mul_(inverse(norms).unsqueeze(-1)))
        nonzero.index_add_(0, labels, (norms > 0).double())
    return sums, nonzero


def _float64_copy(rows: Array) -> Tensor:
    if isinstance(rows, Tensor):
        return rows.detach().to("cpu", torch.float64, copy=True)
    return torch.from_numpy(np.array(rows, dtype=np.float64))


def _classes(labels: Array, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Class number of each row (n,), and number of rows of each class (classes,)."""
    array = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if len(shape) != 2 or 0 in shape:
        raise DataError(f"features have shape {shape}; give (n, dim), neither of them 0.")
    if array.shape != shape[:1]:
        raise DataError(f"labels are of shape {array.shape}, features {shape}; label each row.")
    names, codes, counts = np.unique(array, return_inverse=True, return_counts=True)
    single = names[counts < 2].tolist()
    if single:
        named = ", ".join(map(repr, single[:5])) + (", ..." if len(single) > 5 else "")
        raise DataError(
            f"{len(single)} of {len(names)} classes have a single row, which has no variance: "
            f"{named}. Give two or more rows of each class, or leave these classes out."
        )
    return torch.from_numpy(codes), torch.from_numpy(counts)
