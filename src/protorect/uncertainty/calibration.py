"""Calibrated probabilities: softmax(score / temperature), with a temperature for each task.

The temperature is estimated from two sources:

- The unlabeled samples. Where classes are distinct, the nearest neighbors of a sample are predicted
  as the same class, and all classes are predicted. A linear model of these, chosen on validation
  classes of other pictures and networks, predicts the logarithm of the temperature relative to the
  mean lead of the scores: the highest score of a sample minus its mean score.
- Held-out examples, if there are classes with several: the likelihood of their labels (Guo et al.,
  "On Calibration of Modern Neural Networks", 2017), weighted by how many samples are predicted as
  each class: mistakes on a class that hardly occurs say little about the others.

The temperature maximizes that likelihood times a normal distribution around the expected one. With
one example per class nothing can be held out, and the temperature is higher, out of caution.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protorect.core.functional import predictions
from protorect.core.unit_rows import evenly_spaced
from protorect.uncertainty.held_out import HeldOut
from protorect.uncertainty.ood import centered_rows

TEMPERATURES = torch.logspace(1, -3, 400)  # candidates, in units of the mean lead of the scores
PRIOR_WEIGHT = 4.0  # factor of the squared difference to the expected logarithm of the temperature
# Factors of the linear model of log(lead / temperature), for these inputs: 1, log(classes / 5), the
# entropy of the predictions, the log-odds of the neighbors' agreement, log(examples per class).
MODEL = (-0.68, 0.7, 0.35, 0.75, 0.25)
LOG_TEMPERATURE_MARGIN = 0.08  # added to log(temperature) where no example can be held out
_DEFAULT_STATISTICS = 0.9, 1.2  # entropy and log-odds if there are too few unlabeled samples
_NEIGHBORS = 3  # nearest ones whose predictions are compared with that of a sample
_PSEUDO_COUNT = 0.3  # added to the predictions of every class, relative to their mean number
_SEARCHED_PER_CLASS = 15  # samples searched for neighbors: as many as in the model's tasks


@dataclass(frozen=True)
class Calibration:
    """What turns scores into probabilities, and similarities into out-of-distribution scores."""

    temperature: float  # divides the scores
    mean: float  # of the similarity of samples of the classes
    deviation: float

    def ood_score(self, similarity: Tensor) -> Tensor:
        """Estimated share of in-distribution samples that are more similar, (n,) in 0 .. 1."""
        score: Tensor = torch.special.ndtr((self.mean - similarity.double()) / self.deviation)
        return score


def calibrated_temperature(
    support: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    scores: Tensor,
    held_out: HeldOut,
    model: Sequence[float] = MODEL,
) -> float | None:
    """The temperature of a task; None if there are neither unlabeled nor held-out samples.

    `scores` (n, ways) are those of the unlabeled samples (n, dim).
    """
    known = scores if len(scores) else held_out.scores
    if not len(known):
        return None
    values = model_values(support, labels, unlabeled, scores)
    expected = sum(factor * value for factor, value in zip(model, values, strict=True))
    lead = mean_lead(known)
    if not len(held_out.labels):
        return lead * math.exp(LOG_TEMPERATURE_MARGIN - expected)
    # The held-out examples were classified with one example less.
    ways = scores.shape[1]
    fewer = model[-1] * (math.log(max(len(labels) / ways - 1, 0.5)) - values[-1])
    enough = scores if len(scores) >= 2 * ways else scores[:0]
    weights = label_weights(held_out.labels, predictions(enough), ways)
    temperature = fit_temperature(held_out, weights, lead * math.exp(-expected - fewer), lead)
    return temperature * math.exp(fewer)


def model_values(
    support: Tensor, labels: Tensor, unlabeled: Tensor, scores: Tensor
) -> tuple[float, ...]:
    """Inputs of the linear model, in the order of `MODEL`."""
    ways, statistics = scores.shape[1], _DEFAULT_STATISTICS
    if len(unlabeled) >= 2 * ways:
        some = evenly_spaced(len(unlabeled), _SEARCHED_PER_CLASS * ways)
        rows = centered_rows(support, labels, unlabeled[some])
        predicted = predictions(scores[some])
        statistics = prediction_entropy(predicted, ways), neighbor_agreement(rows, predicted)
    return 1.0, math.log(ways / 5), *statistics, math.log(len(labels) / ways)


def prediction_entropy(predicted: Tensor, ways: int) -> float:
    """Entropy of the predicted classes (n,) relative to that of balanced ones, in 0 .. 1."""
    shares = predicted.bincount(minlength=ways).double() / len(predicted)
    return float(-torch.special.xlogy(shares, shares).sum() / math.log(max(ways, 2)))


def neighbor_agreement(rows: Tensor, predicted: Tensor) -> float:
    """Log-odds that a nearest neighbor of a unit row (n, dim) is predicted as the same class."""
    cosines = (rows @ rows.T).fill_diagonal_(-torch.inf)
    nearest = cosines.topk(min(_NEIGHBORS, len(rows) - 1), dim=-1).indices
    share = float((predicted[nearest] == predicted[:, None]).double().mean())
    return math.log((share + 0.02) / (1.02 - share))


def label_weights(labels: Tensor, predicted: Tensor, ways: int) -> Tensor:
    """Weights (n,) of held-out labels, 1 on average, by the shares of the predicted classes."""
    counts, mean = predicted.bincount(minlength=ways), max(len(predicted), 1) / ways
    weights = ((counts + _PSEUDO_COUNT * mean) / labels.bincount(minlength=ways).clamp_min(1))[
        labels
    ]
    return weights / weights.mean()


def fit_temperature(held_out: HeldOut, weights: Tensor, expected: float, lead: float) -> float:
    """The most likely temperature of held-out examples with such weights, near the expected one."""

    def loss(temperature: float) -> float:
        logs = torch.log_softmax(held_out.scores / temperature, dim=-1)
        likelihood = float(weights.to(logs) @ logs.gather(1, held_out.labels[:, None])[:, 0])
        return PRIOR_WEIGHT * math.log(temperature / expected) ** 2 - likelihood

    return min(candidates(lead), key=loss)


def matching_temperature(scores: Tensor, probability: float) -> float:
    """The temperature of scores (n, ways) at which the mean top probability is `probability`."""

    def difference(temperature: float) -> float:
        return abs(top_probability(scores / temperature) - probability)

    return min(candidates(mean_lead(scores)), key=difference)


def candidates(lead: float) -> list[float]:
    """Temperatures to choose from, for scores of this mean lead."""
    listed: list[float] = (lead * TEMPERATURES).tolist()
    return listed


def top_probability(logits: Tensor) -> float:
    """Mean probability of the most probable class, of logits (n, ways)."""
    return float(torch.softmax(logits, dim=-1).amax(dim=-1).mean())


def mean_lead(scores: Tensor) -> float:
    """The mean lead: the highest score of a sample minus its mean score, on average."""
    return float((scores.amax(dim=-1) - scores.mean(dim=-1)).mean().clamp_min(1e-6))
