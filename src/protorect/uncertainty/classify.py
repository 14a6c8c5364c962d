"""Labels of unlabeled samples with calibrated probabilities and out-of-distribution scores."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect._utils.tensors import tensor_of
from protorect.methods import Method, method
from protorect.uncertainty.calibrated import CalibratedRule, Scored, fit_calibrated

DEFAULT_METHOD = "bd-cspn-plus"
# With fewer unlabeled samples per class than this, only the examples define the classes.
FEW_PER_CLASS, METHOD_FOR_FEW = 2, "cspn"
_ROWS_AT_ONCE = 16384
ClassifiedRow = tuple[int, int, float, float, float]


@dataclass(frozen=True, eq=False)
class Classified:
    """Predictions of n samples, the unlabeled and then the unknown ones."""

    method: str  # the name of the one that was used
    best: NDArray[np.int64]  # (n,) position of the most probable class
    second: NDArray[np.int64]
    probability: NDArray[np.float32]  # of the most probable class
    second_probability: NDArray[np.float32]
    ood: NDArray[np.float64]  # out-of-distribution score in 0 .. 1

    def rows(self) -> Iterator[ClassifiedRow]:
        """The columns of each sample, as plain numbers."""
        columns = self.best, self.second, self.probability, self.second_probability, self.ood
        return zip(*(column.tolist() for column in columns), strict=True)


def method_for(name: str | None, samples: int, ways: int) -> Method:
    """The method of this name; for None, one that suits the number of unlabeled samples."""
    if name is not None:
        return method(name)
    return method(METHOD_FOR_FEW if samples < FEW_PER_CLASS * ways else DEFAULT_METHOD)


@torch.inference_mode()
def classify(
    support: NDArray[np.float32],
    labels: NDArray[np.int64],
    unlabeled: NDArray[np.float32],
    name: str | None = None,
    unknown: NDArray[np.float32] | None = None,
) -> Classified:
    """Label samples together, with the probability of each label and an out-of-distribution score.

    The examples are `support` (n_support, dim) with `labels` (n_support,), positions 0 .. ways - 1
    of the classes; `unlabeled` is (n, dim). `name` is that of a method, or None
    for one that suits the number of unlabeled samples. `unknown` (m, dim) are samples that are
    known to belong to none of the classes, and not among the unlabeled ones: they sharpen the
    out-of-distribution scores.
    """
    rows = tensor_of(unlabeled)
    chosen = method_for(name, len(rows), int(labels.max()) + 1)
    none = None if unknown is None else tensor_of(unknown)
    task = tensor_of(support), tensor_of(labels), rows
    rule, scored = fit_calibrated(chosen, *task, unknown=none)
    parts = [
        _columns(rule, scored.part(slice(i, i + _ROWS_AT_ONCE)))
        for i in range(0, len(rows), _ROWS_AT_ONCE)
    ]
    if none is not None and len(none):
        parts.append(_columns(rule, rule.scored(none)))
    columns = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
    return Classified(chosen.name, *columns)


def _columns(rule: CalibratedRule, samples: Scored) -> tuple[Tensor, ...]:
    """The columns of `Classified` for some of the samples."""
    values, ways = rule.probabilities(samples.scores).topk(2, dim=-1)
    return ways[:, 0], ways[:, 1], values[:, 0], values[:, 1], rule.ood_scores(samples)
