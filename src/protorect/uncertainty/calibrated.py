"""A method fitted to one task, with calibrated probabilities and out-of-distribution scores."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from protorect.core.unit_rows import evenly_spaced
from protorect.methods import Method
from protorect.methods.rules import Rule
from protorect.uncertainty.calibration import (
    Calibration,
    calibrated_temperature,
    matching_temperature,
    top_probability,
)
from protorect.uncertainty.held_out import hold_out
from protorect.uncertainty.ood import SimilarityRule, fit_similarity

# Where nothing can be calibrated. The temperature is that of eq. (1) for cosines.
UNCALIBRATED = Calibration(temperature=0.1, mean=0.0, deviation=1.0)
_SCALE_SAMPLES = 2000  # maximum number to estimate the scale of a rule's scores from


class Scored(NamedTuple):
    """n samples and their scores."""

    features: Tensor  # (n, dim)
    scores: Tensor  # (n, ways) by the method

    def part(self, rows: slice) -> "Scored":
        """Some of the samples."""
        return Scored(self.features[rows], self.scores[rows])


@dataclass(frozen=True, eq=False)
class CalibratedRule:
    """Scores, probabilities and out-of-distribution scores of samples of one task."""

    rule: Rule  # of the method
    similarity: SimilarityRule
    calibration: Calibration
    score_scale: float = 1.0  # from the rule's scores to those of the unlabeled samples

    def new_scores(self, samples: Tensor) -> Tensor:
        """Scores (n, ways) of new samples (1, n, dim), on the scale of the unlabeled samples'."""
        return self.score_scale * self.rule.scores(samples)[0]

    def scored(self, samples: Tensor) -> Scored:
        """New samples (n, dim) with their scores."""
        return Scored(samples, self.new_scores(samples[None]))

    def probabilities(self, scores: Tensor) -> Tensor:
        """Probabilities of the classes, (n, ways), from the method's scores of that shape."""
        return torch.softmax(scores / self.calibration.temperature, dim=-1)

    def ood_scores(self, samples: Scored) -> Tensor:
        """Out-of-distribution scores (n,) in 0 .. 1, higher is more out-of-distribution."""
        return self.calibration.ood_score(self.similarity.scores(samples.features[None])[0, :, 0])


@torch.inference_mode()
def fit_calibrated(
    chosen: Method,
    support: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    *,
    unknown: Tensor | None = None,
    calibrate: bool = True,
) -> tuple[CalibratedRule, Scored]:
    """Fit a method to one task; return its rule and its scores of the unlabeled samples.

    `support` is (n_support, dim) with `labels` (n_support,), integers 0 .. ways - 1, each present;
    `unlabeled` is (n, dim), possibly without rows; `unknown` (m, dim) are samples that are known to
    belong to none of the classes: they sharpen the out-of-distribution scores.
    """
    fitted = chosen.fit(support[None], labels, unlabeled[None])
    scored = Scored(unlabeled, fitted.unlabeled_scores[0])
    similarity, mean, deviation = fit_similarity(support, labels, unlabeled, unknown)
    temperature, score_scale = UNCALIBRATED.temperature, 1.0
    if calibrate:
        held_out = hold_out(chosen, support, labels, unlabeled)
        found = calibrated_temperature(support, labels, *scored, held_out)
        temperature = temperature if found is None else found
        if not chosen.has_rule and len(unlabeled):
            score_scale = _score_scale(fitted.rule, temperature, scored)
    calibration = Calibration(temperature, mean, deviation)
    return CalibratedRule(fitted.rule, similarity, calibration, score_scale), scored


def _score_scale(rule: Rule, temperature: float, unlabeled: Scored) -> float:
    """The factor that gives the rule's scores the confidence of the method's scores.

    The rule of a method that has none of its own gives cosines with prototypes, on another scale.
    """
    some = unlabeled.part(evenly_spaced(len(unlabeled.features), _SCALE_SAMPLES))
    target = top_probability(some.scores / temperature)
    return temperature / matching_temperature(rule.scores(some.features[None])[0], target)
