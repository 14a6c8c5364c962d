"""Labels of unlabeled samples with calibrated probabilities and out-of-distribution scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect._utils.tensors import tensor_of
from protorect.methods import Method, method
from protorect.uncertainty.calibration import Calibration, hold_out, thinned
from protorect.uncertainty.ood import Scored, knn_similarity

DEFAULT_METHOD = "bd-cspn-plus"
# Fewer unlabeled samples per class say nothing about the classes: the examples alone decide.
FEW_PER_CLASS, METHOD_FOR_FEW = 2, "cspn"
_COSINES = "bd-cspn-classes"
_UNCALIBRATED = Calibration(temperature=0.1, mean=0.0, deviation=1.0)
_ROWS_AT_ONCE = 16384


@dataclass(frozen=True)
class Classified:
    """Labels of n samples, and the name of the method that was used.

    `best` and `second` (n,) are positions of the two most probable classes, `probability` and
    `second_probability` (n,) their probabilities. `ood` (n,) is the out-of-distribution score in
    0 .. 1: about the share of the samples of the classes that are more similar to their class.
    """

    method: str
    best: NDArray[np.int64]
    second: NDArray[np.int64]
    probability: NDArray[np.float32]
    second_probability: NDArray[np.float32]
    ood: NDArray[np.float64]


def method_for(name: str | Method | None, samples: int, ways: int) -> Method:
    """The method of this name; for None, one that suits the number of unlabeled samples."""
    if name is not None:
        return method(name)
    return method(METHOD_FOR_FEW if samples < FEW_PER_CLASS * ways else DEFAULT_METHOD)


@torch.inference_mode()
def classify(
    support: NDArray[np.float32],
    labels: NDArray[np.int64],
    unlabeled: NDArray[np.float32],
    name: str | Method | None = None,
) -> Classified:
    """Label samples together, with the probability of each label and an out-of-distribution score.

    Parameters
    ----------
    support, labels
        (n_support, dim) and the class positions 0 .. ways - 1 of the examples.
    unlabeled
        (n, dim), at least one row.
    name
        The name of a method; None for one that suits the number of unlabeled samples.
    """
    examples, known, rows = tensor_of(support), tensor_of(labels), tensor_of(unlabeled)
    chosen = method_for(name, len(rows), int(known.max()) + 1)
    cosine_method = method(METHOD_FOR_FEW if chosen.name == METHOD_FOR_FEW else _COSINES)
    if cosine_method.name == chosen.name:
        cosine_method = chosen  # its scores are not computed twice
    scores = chosen(examples[None], known, rows[None])[0]
    cosines = scores
    if cosine_method is not chosen:
        cosines = cosine_method(examples[None], known, rows[None])[0]
    held_out = hold_out(chosen, cosine_method, examples, known, rows, scores)
    calibration = Calibration.from_held_out(held_out) if len(held_out.labels) else _UNCALIBRATED
    scored = Scored(rows, scores, cosines)
    neighbors = scored.part(thinned(len(rows)))
    parts = [
        _columns(calibration, scored.part(slice(i, i + _ROWS_AT_ONCE)), neighbors)
        for i in range(0, len(rows), _ROWS_AT_ONCE)
    ]
    columns = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
    return Classified(chosen.name, *columns)


def _columns(calibration: Calibration, samples: Scored, neighbors: Scored) -> tuple[Tensor, ...]:
    probabilities = calibration.probabilities(samples.scores)
    values, ways = probabilities.topk(2, dim=-1)
    knn = knn_similarity(samples, neighbors)
    ood = calibration.ood_score(probabilities, samples.cosines, knn)
    return ways[:, 0], ways[:, 1], values[:, 0], values[:, 1], ood
