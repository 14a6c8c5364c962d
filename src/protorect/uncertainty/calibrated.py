"""A method fitted to one task, with calibrated probabilities and out-of-distribution scores."""

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect.methods import Method, method
from protorect.methods.rules import Rule
from protorect.uncertainty.calibration import (
    Calibration,
    hold_out,
    matching_temperature,
    thinned,
    top_probability,
)
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
    score_scale: float = 1.0  # of the rule's scores, to the scale of those of unlabeled samples

    def new_scores(self, samples: Tensor) -> Tensor:
        """Scores (n, ways) of new samples (1, n, dim), on the scale of the unlabeled samples'."""
        return self.score_scale * self.rule.scores(samples)[0]

    def scored(self, samples: Tensor) -> Scored:
        """New samples (n, dim) with their scores."""
        cosines = self.cosine_rule.scores(samples[None])[0]
        return Scored(samples, self.new_scores(samples[None]), cosines)

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
    scored = Scored(unlabeled, scores, cosines)
    neighbors = scored.part(thinned(len(unlabeled)))
    calibration, score_scale = UNCALIBRATED, 1.0
    if calibrate:
        held_out = hold_out(chosen, cosine_method, support, labels, unlabeled, scores)
        if len(held_out.labels):
            calibration = Calibration.from_held_out(held_out)
            if not chosen.has_rule and len(unlabeled):
                score_scale = _score_scale(fitted.rule, calibration.temperature, neighbors)
    return (
        CalibratedRule(fitted.rule, by_cosine.rule, calibration, neighbors, score_scale),
        scored,
    )


def _score_scale(rule: Rule, temperature: float, unlabeled: Scored) -> float:
    """The factor that gives the rule's scores the confidence of the method's scores.

    A rule that is not the method's own has scores on another scale: they are cosines, whatever the
    method computes.
    """
    target = top_probability(unlabeled.scores / temperature)
    return temperature / matching_temperature(rule.scores(unlabeled.features[None])[0], target)
