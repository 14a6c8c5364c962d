"""Calibrated probabilities and out-of-distribution scores, from held-out examples.

Each example is held out once: it is classified as one of the unlabeled samples, and an unlabeled
sample that was predicted as its class with median confidence replaces it among the examples. So
every class keeps its number of examples, and the only example of a class can be held out, too. The
held-out examples give

- the temperature that divides the scores: the one under which the labels of the held-out examples
  are most likely (Guo et al., "On Calibration of Modern Neural Networks", 2017);
- the scale of the out-of-distribution score: how similar samples of the classes are to their class.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from protorect.core.functional import predictions
from protorect.methods import Method
from protorect.uncertainty.ood import Scored, knn_similarity

TASKS = 16  # approximate maximum number of tasks, each with some examples held out
MAX_UNLABELED = 2000  # maximum number of unlabeled samples in each task
TEMPERATURES = torch.logspace(1, -3, 400)  # candidates, in units of the mean lead of the scores
PRIOR = 0.1  # weight of an example of every class: without an error the temperature would become 0
LOG_WEIGHT = 0.1  # of the log-probability in the similarity; chosen on half of the classes
OWN_WEIGHT = 0.5  # of a sample itself in its similarity; the rest is its neighbors'


class HeldOut(NamedTuple):
    """The n held-out examples, classified."""

    scores: Tensor  # (n, ways) by the method
    cosines: Tensor  # (n, ways) with the rectified prototypes
    knn: Tensor  # (n,) similarity of their nearest neighbors
    labels: Tensor  # (n,)


@dataclass(frozen=True)
class Calibration:
    """What the held-out examples determine."""

    temperature: float  # divides the scores
    mean: float  # of the similarity of the held-out examples to their class
    deviation: float

    @classmethod
    def from_held_out(cls, held_out: HeldOut) -> Self:
        """Calibrate on held-out examples."""
        temperature = fit_temperature(held_out.scores, held_out.labels)
        probabilities = torch.softmax(held_out.scores / temperature, dim=-1)
        similarity = _similarity(probabilities, held_out.cosines, held_out.knn)
        deviation = float(similarity.std()) if len(similarity) > 1 else 0.0
        return cls(temperature, float(similarity.mean()), max(deviation, 1e-3))

    def ood_score(self, probabilities: Tensor, cosines: Tensor, knn: Tensor) -> Tensor:
        """Estimated share of in-distribution samples that are more similar, (n,) in 0 .. 1."""
        similarity = _similarity(probabilities, cosines, knn).double()
        score: Tensor = torch.special.ndtr((self.mean - similarity) / self.deviation)
        return score


def fit_temperature(scores: Tensor, labels: Tensor) -> float:
    """The temperature of scores (n, ways) under which the labels (n,) are most likely."""

    def loss(temperature: float) -> float:
        logs = torch.log_softmax(scores / temperature, dim=-1)
        return -float(logs.gather(1, labels[:, None]).sum() + PRIOR * logs.mean(dim=1).mean())

    return min(_temperatures(scores), key=loss)


def matching_temperature(scores: Tensor, probability: float) -> float:
    """The temperature of scores (n, ways) at which the mean top probability is `probability`."""

    def difference(temperature: float) -> float:
        return abs(top_probability(scores / temperature) - probability)

    return min(_temperatures(scores), key=difference)


def top_probability(logits: Tensor) -> float:
    """Mean probability of the most probable class, of logits (n, ways)."""
    return float(torch.softmax(logits, dim=-1).amax(dim=-1).mean())


def _temperatures(scores: Tensor) -> list[float]:
    """Candidates for the temperature of scores (n, ways)."""
    lead = float((scores.max(dim=-1).values - scores.mean(dim=-1)).mean().clamp_min(1e-6))
    return (lead * TEMPERATURES).tolist()


def thinned(count: int) -> slice:
    """At most MAX_UNLABELED of `count` samples, evenly spaced."""
    return slice(None, None, max(1, -(-count // MAX_UNLABELED)))


def hold_out(
    method: Method,
    cosine_method: Method,
    support: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    scores: Tensor,
) -> HeldOut:
    """Classify each example of the support set (n_support, dim) without its label.

    `method` is the one to calibrate and `scores` (n, ways) its scores of the unlabeled samples
    (n, dim); the scores of `cosine_method` are cosines with rectified prototypes.
    """
    unlabeled, scores = unlabeled[thinned(len(unlabeled))], scores[thinned(len(unlabeled))]
    replacements, counts = _replacements(scores), labels.bincount()
    parts = [HeldOut(scores[:0], scores[:0], scores[:0, 0], labels[:0])]
    for group in _groups(labels):
        # The only example of a class is held out only if a sample replaces it.
        group = [i for i in group if counts[labels[i]] > 1 or int(labels[i]) in replacements]
        if not group:
            continue
        is_held_out = torch.zeros(len(labels), dtype=torch.bool)
        is_held_out[group] = True
        held_out_classes = dict.fromkeys(labels[group].tolist())
        replaced = [label for label in held_out_classes if label in replacements]
        rows = labels.new_tensor([replacements[label] for label in replaced])
        is_query = torch.ones(len(unlabeled), dtype=torch.bool)
        is_query[rows] = False
        examples = torch.cat([support[~is_held_out], unlabeled[rows]])[None]
        known = torch.cat([labels[~is_held_out], labels.new_tensor(replaced)])
        query = torch.cat([support[is_held_out], unlabeled[is_query]])
        if len(unlabeled) or method.has_rule:
            new = method(examples, known, query[None])[0]
        else:  # all samples to come are new ones, and these have scores of another scale
            new = method.fit(examples, known).rule.scores(query[None])[0]
        cosines = new if cosine_method is method else cosine_method(examples, known, query[None])[0]
        scored = Scored(query, new, cosines)
        held_out, rest = scored.part(slice(len(group))), scored.part(slice(len(group), None))
        knn = knn_similarity(held_out, rest)
        parts.append(HeldOut(held_out.scores, held_out.cosines, knn, labels[is_held_out]))
    return HeldOut(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _replacements(scores: Tensor) -> dict[int, int]:
    """For each predicted class, the sample of median lead among those predicted as it."""
    predicted = predictions(scores)
    first_two = scores.topk(2, dim=-1).values
    lead = first_two[:, 0] - first_two[:, 1]
    replacements = {}
    for way in set(predicted.tolist()):
        members = (predicted == way).nonzero().flatten()
        order = members[lead[members].argsort(descending=True, stable=True)]
        replacements[way] = int(order[len(order) // 2])
    return replacements


def _groups(labels: Tensor) -> list[list[int]]:
    """Examples that are held out together, in about TASKS groups.

    A group has at most one example of a class that has TASKS or fewer.
    """
    by_shot: defaultdict[int, list[int]] = defaultdict(list)  # the n-th example of every class
    seen = Counter[int]()
    for i, label in enumerate(labels.tolist()):
        by_shot[seen[label] % TASKS].append(i)
        seen[label] += 1
    size = -(-len(labels) // TASKS)
    return [shot[i : i + size] for shot in by_shot.values() for i in range(0, len(shot), size)]


def _similarity(probabilities: Tensor, cosines: Tensor, knn: Tensor) -> Tensor:
    """Similarity to the predicted class (n,): of a sample itself and of its nearest neighbors."""
    best = probabilities.max(dim=-1)
    own = cosines.gather(1, best.indices[:, None]).squeeze(1)
    own = own + LOG_WEIGHT * best.values.clamp_min(1e-30).log()
    return OWN_WEIGHT * own + (1 - OWN_WEIGHT) * knn
