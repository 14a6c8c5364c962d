"""A method fitted to one task, with calibrated probabilities and out-of-distribution scores."""

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect.methods import Method, method
from protorect.methods.rules import Rule
from protorect.uncertainty.calibration import Calibration, hold_out, thinned
from protorect.uncertainty.ood import Scored, knn_similarity

_COSINES = "bd-cspn-classes"  # its scores are cosines with rectified prototypes
_ALSO_COSINES = "cspn"
# Where no example can be held out. The temperature is that of eq. (1) for cosines.
UNCALIBRATED = Calibration(temperature=0.1, mean=0.0, deviation=1.0)


@dataclass(frozen=True, eq=False)
class CalibratedRule:
    """Scores, probabilities and out-of-distribution scores of samples of one task."""

    rule: Rule  # of the method
    cosine_rule: Rule  # cosines with rectified prototypes
    calibration: Calibration
    neighbors: Scored  # some of the unlabeled samples

    def scored(self, samples: Tensor) -> Scored:
        """New samples (n, dim) with their scores."""
        scores, cosines = (rule.scores(samples[None])[0] for rule in (self.rule, self.cosine_rule))
        return Scored(samples, scores, cosines)

    def probabilities(self, scores: Tensor) -> Tensor:
        """Probabilities of the classes, (n, ways), from the method's scores of that shape."""
        return torch.softmax(scores / self.calibration.temperature, dim=-1)

    def ood_scores(self, samples: Scored) -> Tensor:
        """Out-of-distribution scores (n,) in 0 .. 1, higher is more out-of-distribution."""
        knn = knn_similarity(samples, self.neighbors)
        return self.calibration.ood_score(self.probabilities(samples.scores), samples.cosines, knn)


@torch.inference_mode()
def fit_calibrated(
    chosen: Method, support: Tensor, labels: Tensor, unlabeled: Tensor, *, calibrate: bool = True
) -> tuple[CalibratedRule, Scored]:
    """Fit a method to one task; return its rule and its scores of the unlabeled samples.

    `support` is (n_support, dim) with `labels` (n_support,), integers 0 .. ways - 1, each present;
    `unlabeled` is (n, dim), possibly without rows.
    """
    cosine_method = chosen if chosen.name in (_COSINES, _ALSO_COSINES) else method(_COSINES)
    task = (support[None], labels, unlabeled[None])
    fitted = chosen.fit(*task)
    by_cosine = fitted if cosine_method is chosen else cosine_method.fit(*task)
    scores, cosines = fitted.unlabeled_scores[0], by_cosine.unlabeled_scores[0]
    calibration = UNCALIBRATED
    if calibrate:
        held_out = hold_out(chosen, cosine_method, support, labels, unlabeled, scores)
        if len(held_out.labels):
            calibration = Calibration.from_held_out(held_out)
    scored = Scored(unlabeled, scores, cosines)
    neighbors = scored.part(thinned(len(unlabeled)))
    return CalibratedRule(fitted.rule, by_cosine.rule, calibration, neighbors), scored
