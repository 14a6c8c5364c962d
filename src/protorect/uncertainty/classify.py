"""Labels of unlabeled samples with calibrated probabilities and out-of-distribution scores."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect._utils.tensors import tensor_of
from protorect.methods import Fitted, Method, method
from protorect.uncertainty.calibration import Calibration, hold_out, thinned
from protorect.uncertainty.ood import Scored, knn_similarity

DEFAULT_METHOD = "bd-cspn-plus"
# With fewer unlabeled samples per class than this, only the examples define the classes.
FEW_PER_CLASS, METHOD_FOR_FEW = 2, "cspn"
_COSINES = "bd-cspn-classes"  # its scores are cosines with rectified prototypes, as those of cspn
_UNCALIBRATED = Calibration(temperature=0.1, mean=0.0, deviation=1.0)
_ROWS_AT_ONCE = 16384


@dataclass(frozen=True)
class Classified:
    """Predictions of n samples."""

    method: str  # the name of the one that was used
    best: NDArray[np.int64]  # (n,) position of the most probable class
    second: NDArray[np.int64]
    probability: NDArray[np.float32]  # of the most probable class
    second_probability: NDArray[np.float32]
    ood: NDArray[np.float64]  # out-of-distribution score in 0 .. 1


def method_for(name: str | None, samples: int, ways: int) -> Method:
    """The method of this name; for None, one that suits the number of unlabeled samples."""
    if name is not None:
        return method(name)
    return method(METHOD_FOR_FEW if samples < FEW_PER_CLASS * ways else DEFAULT_METHOD)


@dataclass(frozen=True, eq=False)
class CalibratedFit:
    """A method fitted to one task, with probabilities that held-out examples calibrate.

    Samples are (1, n, dim); the unlabeled ones of the fit, given as the same object, have the
    scores that the method found for all of them together.
    """

    fitted: Fitted
    cosine_fitted: Fitted  # its scores are cosines with rectified prototypes
    calibration: Calibration
    neighbors: Scored  # some of the unlabeled samples

    def probabilities(self, samples: Tensor) -> Tensor:
        """Calibrated probabilities of the classes, (n, ways)."""
        return torch.softmax(self.fitted.scores(samples)[0] / self.calibration.temperature, dim=-1)

    def classify(self, samples: Tensor) -> Classified:
        """The two most probable classes of each sample, and its out-of-distribution score."""
        scored = score_samples(self.fitted, self.cosine_fitted, samples)
        starts = range(0, max(samples.shape[1], 1), _ROWS_AT_ONCE)
        parts = [self._columns(scored.part(slice(i, i + _ROWS_AT_ONCE))) for i in starts]
        columns = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
        return Classified(self.fitted.method, *columns)

    def _columns(self, samples: Scored) -> tuple[Tensor, ...]:
        """The columns of `Classified` for some of the samples."""
        probabilities = torch.softmax(samples.scores / self.calibration.temperature, dim=-1)
        values, ways = probabilities.topk(2, dim=-1)
        knn = knn_similarity(samples, self.neighbors)
        ood = self.calibration.ood_score(probabilities, samples.cosines, knn)
        return ways[:, 0], ways[:, 1], values[:, 0], values[:, 1], ood


def score_samples(fitted: Fitted, cosine_fitted: Fitted, samples: Tensor) -> Scored:
    """Samples (1, n, dim) with their scores."""
    scores = fitted.scores(samples)[0]
    cosines = scores if cosine_fitted is fitted else cosine_fitted.scores(samples)[0]
    return Scored(samples[0], scores, cosines)


@torch.inference_mode()
def fit_calibrated(
    chosen: Method, support: Tensor, labels: Tensor, unlabeled: Tensor
) -> CalibratedFit:
    """Fit a method to one task, and calibrate its probabilities on the examples.

    The examples are `support` (1, n_support, dim) with `labels` (n_support,), positions 0 .. ways -
    1 of the classes; `unlabeled` is (1, n, dim).
    """
    cosine_method = chosen if chosen.name in (METHOD_FOR_FEW, _COSINES) else method(_COSINES)
    fitted = cosine_fitted = chosen.fit(support, labels, unlabeled)
    if cosine_method is not chosen:
        cosine_fitted = cosine_method.fit(support, labels, unlabeled)
    scored = score_samples(fitted, cosine_fitted, unlabeled)
    held_out = hold_out(chosen, cosine_method, support[0], labels, unlabeled[0], scored.scores)
    calibration = Calibration.from_held_out(held_out) if len(held_out.labels) else _UNCALIBRATED
    neighbors = scored.part(thinned(len(unlabeled[0])))
    return CalibratedFit(fitted, cosine_fitted, calibration, neighbors)


@torch.inference_mode()
def classify(
    support: NDArray[np.float32],
    labels: NDArray[np.int64],
    unlabeled: NDArray[np.float32],
    name: str | None = None,
) -> Classified:
    """Label samples together, with the probability of each label and an out-of-distribution score.

    The examples are `support` (n_support, dim) with `labels` (n_support,), positions 0 .. ways - 1
    of the classes; `unlabeled` (n, dim) has at least one row. `name` is that of a method, or None
    for one that suits the number of unlabeled samples.
    """
    known, samples = tensor_of(labels), tensor_of(unlabeled)[None]
    chosen = method_for(name, len(unlabeled), int(known.max()) + 1)
    return fit_calibrated(chosen, tensor_of(support)[None], known, samples).classify(samples)
