"""How sure an answer is, learnt from the examples themselves.

Each example is left out once, goes into the pile, and is classified like any picture of it. Its
place among the examples is taken by a picture of the pile that was given its label with middling
confidence, so that a class keeps its number of examples and one of a single example can be left
out at all. What became of the examples gives

- the temperature: the factor of the scores under which the labels of the left-out examples are
  most likely (Guo et al., "On Calibration of Modern Neural Networks", 2017);
- the familiarity: how like its class a picture is, and how like it its neighbours are, compared
  with the left-out examples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect.core.functional import predictions
from protorect.methods import Method
from protorect.uncertainty.ood import Looked, company

RUNS = 16  # at most about so many tasks, each with some examples left out
PILE = 2000  # at most so many pictures of the pile take part in each
TEMPERATURES = torch.logspace(-1, 3, 400)  # what the scores are multiplied by
PRIOR = 0.1  # of an example of any class: without a mistake the temperature would have no bound
LOG_SHARE = 0.1  # of the log-probability in the likeness; chosen on half of the classes
OWN_SHARE = 0.5  # of a picture itself in its likeness, the rest is its neighbours'


@dataclass(frozen=True)
class LeftOut:
    """The examples that could be left out.

    Parameters
    ----------
    scores
        (n, ways), what the method gave them.
    cosines
        (n, ways), with the rectified prototypes.
    company
        (n,), how like their class their neighbours were.
    labels
        (n,), their classes.
    """

    scores: Tensor
    cosines: Tensor
    company: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Calibration:
    """What turns scores into probabilities, and likeness into familiarity.

    Parameters
    ----------
    temperature
        The factor of the scores in the softmax.
    likeness, spread
        Mean and standard deviation of the likeness of the left-out examples.
    """

    temperature: float
    likeness: float
    spread: float

    @classmethod
    def of(cls, left_out: LeftOut) -> Calibration:
        """From what became of the left-out examples."""
        factor = fitted_temperature(left_out.scores, left_out.labels)
        chances = torch.softmax(factor * left_out.scores, dim=-1)
        held = _likeness(chances, left_out.cosines, left_out.company)
        spread = float(held.std()) if len(held) > 1 else 0.0
        return cls(factor, float(held.mean()), max(spread, 1e-3))

    def probabilities(self, scores: Tensor) -> Tensor:
        """Of every class, (n, ways)."""
        return torch.softmax(self.temperature * scores, dim=-1)

    def familiarity(self, probabilities: Tensor, cosines: Tensor, company: Tensor) -> Tensor:
        """About which share of the pictures of our classes would be less like them, (n,)."""
        likeness = _likeness(probabilities, cosines, company)
        share: Tensor = torch.special.ndtr((likeness - self.likeness) / self.spread)
        return share


def fitted_temperature(scores: Tensor, labels: Tensor) -> float:
    """The factor of scores (n, ways) under which the labels (n,) are most likely."""
    best, least = 1.0, np.inf
    typical = float((scores.max(dim=-1).values - scores.mean(dim=-1)).mean().clamp_min(1e-6))
    for factor in TEMPERATURES / typical:
        logs = torch.log_softmax(factor * scores, dim=-1)
        loss = -float(logs.gather(1, labels[:, None]).sum() + PRIOR * logs.mean(dim=1).mean())
        if loss < least:
            best, least = float(factor), loss
    return best


def thinned(pictures: int) -> slice:
    """At most PILE of so many pictures, evenly among them."""
    return slice(None, None, -(-pictures // PILE))


def leave_one_out(
    method: Method, cosines: Method, support: Tensor, labels: Tensor, pile: Tensor, scores: Tensor
) -> LeftOut:
    """Classify each example as if it had no label.

    Parameters
    ----------
    method
        What is calibrated.
    cosines
        The method whose scores are cosines with rectified prototypes.
    support, labels
        (n_support, dim) and (n_support,).
    pile, scores
        (n, dim), and what `method` gave them, (n, ways).
    """
    pile, scores = pile[thinned(len(pile))], scores[thinned(len(pile))]
    stand_ins = _stand_ins(scores)
    found: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for group in _groups(labels):
        group = [i for i in group if _may_go(i, labels, stand_ins)]
        if not group:
            continue
        out = torch.zeros(len(labels), dtype=torch.bool)
        out[group] = True
        joining = [(stand_ins[int(labels[i])], int(labels[i])) for i in group]
        joining = [(place, label) for place, label in joining if place is not None]
        rows = torch.tensor([place for place, _ in joining], dtype=torch.long)
        staying = torch.ones(len(pile), dtype=torch.bool)
        staying[rows] = False
        examples = torch.cat([support[~out], pile[rows]])
        known = torch.cat([labels[~out], labels.new_tensor([label for _, label in joining])])
        query = torch.cat([support[out], pile[staying]])
        given = method(examples[None], known, query[None])[0]
        near = given if cosines is method else cosines(examples[None], known, query[None])[0]
        looked = Looked(query, given, near)
        left = looked.part(slice(len(group)))
        around = company(left, looked.part(slice(len(group), None)))
        found.append((left.scores, left.cosines, around, labels[out]))
    if not found:
        empty = support.new_empty(0, int(labels.max()) + 1)
        return LeftOut(empty, empty, empty[:, 0], labels[:0])
    return LeftOut(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def _stand_ins(scores: Tensor) -> list[int | None]:
    """Of each class, the picture in the middle of those predicted as it, by their lead."""
    predicted = predictions(scores)
    first_two = scores.topk(2, dim=-1).values
    lead = first_two[:, 0] - first_two[:, 1]
    stand_ins: list[int | None] = []
    for way in range(scores.shape[1]):
        members = (predicted == way).nonzero().flatten()
        order = members[lead[members].argsort(descending=True, stable=True)]
        stand_ins.append(int(order[len(order) // 2]) if len(order) else None)
    return stand_ins


def _groups(labels: Tensor) -> list[list[int]]:
    """Examples that are left out together: at most one of a class, in about RUNS groups."""
    turn: NDArray[np.int64] = np.zeros(len(labels), np.int64)  # how many of its class came before
    seen: dict[int, int] = {}
    for i, label in enumerate(labels.tolist()):
        turn[i] = seen.get(label, 0)
        seen[label] = int(turn[i]) + 1
    largest = -(-len(labels) // RUNS)
    groups = []
    for number in range(int(turn.max()) + 1):
        members = np.flatnonzero(turn == number).tolist()
        groups += [members[i : i + largest] for i in range(0, len(members), largest)]
    return groups


def _may_go(example: int, labels: Tensor, stand_ins: list[int | None]) -> bool:
    """Whether its class has somebody left without it."""
    label = int(labels[example])
    return stand_ins[label] is not None or int((labels == label).sum()) > 1


def _likeness(probabilities: Tensor, cosines: Tensor, company: Tensor) -> Tensor:
    """Cosine with the class a picture is given, less where other classes compete; and company."""
    best = probabilities.max(dim=-1)
    near = cosines.gather(1, best.indices[:, None]).squeeze(1)
    own = near + LOG_SHARE * best.values.clamp_min(1e-30).log()
    return OWN_SHARE * own + (1 - OWN_SHARE) * company
