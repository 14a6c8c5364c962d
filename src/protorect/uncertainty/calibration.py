"""Calibrated probabilities and out-of-distribution scores, from held-out examples.

Each example is held out once, joins the unlabeled samples, and is classified like any of them. Its
place among the examples is taken by an unlabeled sample that was predicted as its class with median
confidence, so that a class keeps its number of examples and one with a single example can be held
out at all. The held-out examples give

- the temperature that divides the scores: the one under which the labels of the held-out examples
  are most likely (Guo et al., "On Calibration of Modern Neural Networks", 2017);
- the scale of the out-of-distribution score: how similar samples of the classes are to their class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protorect.core.functional import predictions
from protorect.methods import Method
from protorect.uncertainty.ood import Scored, knn_similarity

TASKS = 16  # at most about so many tasks, each with some examples held out
MAX_UNLABELED = 2000  # at most so many unlabeled samples take part in each
TEMPERATURES = torch.logspace(1, -3, 400)  # candidates, in units of the mean lead of the scores
PRIOR = 0.1  # of an example of any class: without a mistake the temperature would become 0
LOG_SHARE = 0.1  # of the log-probability in the similarity; chosen on half of the classes
OWN_SHARE = 0.5  # of a sample itself in its similarity, the rest is its neighbors'


@dataclass(frozen=True)
class HeldOut:
    """The held-out examples.

    `scores` (n, ways) by the method, `cosines` (n, ways) with the rectified prototypes, `knn` (n,)
    similarity of their neighbors, and their `labels` (n,).
    """

    scores: Tensor
    cosines: Tensor
    knn: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Calibration:
    """The temperature of the scores, and mean and deviation of the held-out similarities."""

    temperature: float
    mean: float
    deviation: float

    @classmethod
    def from_held_out(cls, held_out: HeldOut) -> Calibration:
        """Calibrate on held-out examples."""
        temperature = fit_temperature(held_out.scores, held_out.labels)
        probabilities = torch.softmax(held_out.scores / temperature, dim=-1)
        similarity = _similarity(probabilities, held_out.cosines, held_out.knn)
        deviation = float(similarity.std()) if len(similarity) > 1 else 0.0
        return cls(temperature, float(similarity.mean()), max(deviation, 1e-3))

    def probabilities(self, scores: Tensor) -> Tensor:
        """Probability of every class, (n, ways)."""
        return torch.softmax(scores / self.temperature, dim=-1)

    def ood_score(self, probabilities: Tensor, cosines: Tensor, knn: Tensor) -> Tensor:
        """Estimated share of the samples of the classes that are more similar, (n,) in 0 .. 1."""
        similarity = _similarity(probabilities, cosines, knn).double()
        score: Tensor = torch.special.ndtr((self.mean - similarity) / self.deviation)
        return score


def fit_temperature(scores: Tensor, labels: Tensor) -> float:
    """The temperature of scores (n, ways) under which the labels (n,) are most likely."""
    best, lowest = 1.0, np.inf
    lead = float((scores.max(dim=-1).values - scores.mean(dim=-1)).mean().clamp_min(1e-6))
    for temperature in (lead * TEMPERATURES).tolist():
        logs = torch.log_softmax(scores / temperature, dim=-1)
        loss = -float(logs.gather(1, labels[:, None]).sum() + PRIOR * logs.mean(dim=1).mean())
        if loss < lowest:
            best, lowest = temperature, loss
    return best


def thinned(count: int) -> slice:
    """At most MAX_UNLABELED of so many samples, evenly spaced."""
    return slice(None, None, -(-count // MAX_UNLABELED))


def hold_out(
    method: Method,
    cosine_method: Method,
    support: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    scores: Tensor,
) -> HeldOut:
    """Classify each example of a support set (n_support, dim) with its label held out.

    `scores` (n, ways) are those of the unlabeled samples (n, dim) by `method`, the one to
    calibrate; the scores of `cosine_method` are cosines with rectified prototypes.
    """
    unlabeled, scores = unlabeled[thinned(len(unlabeled))], scores[thinned(len(unlabeled))]
    replacements, counts = _replacements(scores), labels.bincount()
    parts: list[tuple[Tensor, ...]] = []
    for group in _groups(labels):
        group = [i for i in group if counts[labels[i]] > 1 or replacements[labels[i]] is not None]
        if not group:  # without it its class would have no example
            continue
        is_held_out = torch.zeros(len(labels), dtype=torch.bool)
        is_held_out[group] = True
        joining = {int(label): replacements[int(label)] for label in labels[group]}
        rows = torch.tensor([row for row in joining.values() if row is not None], dtype=torch.long)
        joined = [label for label, row in joining.items() if row is not None]
        staying = torch.ones(len(unlabeled), dtype=torch.bool)
        staying[rows] = False
        examples = torch.cat([support[~is_held_out], unlabeled[rows]])[None]
        known = torch.cat([labels[~is_held_out], labels.new_tensor(joined)])
        query = torch.cat([support[is_held_out], unlabeled[staying]])
        new = method(examples, known, query[None])[0]
        cosines = new if cosine_method is method else cosine_method(examples, known, query[None])[0]
        everything = Scored(query, new, cosines)
        out, rest = everything.part(slice(len(group))), everything.part(slice(len(group), None))
        parts.append((out.scores, out.cosines, knn_similarity(out, rest), labels[is_held_out]))
    if not parts:
        empty = support.new_empty(0, int(labels.max()) + 1)
        return HeldOut(empty, empty, empty[:, 0], labels[:0])
    return HeldOut(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _replacements(scores: Tensor) -> list[int | None]:
    """For each class, the sample of median lead among those predicted as it."""
    predicted = predictions(scores)
    first_two = scores.topk(2, dim=-1).values
    lead = first_two[:, 0] - first_two[:, 1]
    replacements: list[int | None] = []
    for way in range(scores.shape[1]):
        members = (predicted == way).nonzero().flatten()
        order = members[lead[members].argsort(descending=True, stable=True)]
        replacements.append(int(order[len(order) // 2]) if len(order) else None)
    return replacements


def _groups(labels: Tensor) -> list[list[int]]:
    """Examples that are held out together: at most one per class, in about TASKS groups."""
    rounds: list[list[int]] = []  # the n-th example of every class
    seen: dict[int, int] = {}
    for i, label in enumerate(labels.tolist()):
        number = seen.get(label, 0)
        seen[label] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(i)
    largest = -(-len(labels) // TASKS)
    return [some[i : i + largest] for some in rounds for i in range(0, len(some), largest)]


def _similarity(probabilities: Tensor, cosines: Tensor, knn: Tensor) -> Tensor:
    """Cosine with the predicted class, less where other classes compete, and of the neighbors."""
    best = probabilities.max(dim=-1)
    own = cosines.gather(1, best.indices[:, None]).squeeze(1)
    own = own + LOG_SHARE * best.values.clamp_min(1e-30).log()
    return OWN_SHARE * own + (1 - OWN_SHARE) * knn
