"""BD-CSPN-plus: rectification that asks the pile how far it may be trusted.

Developed here, from Liu, Song, Qin: "Prototype Rectification for Few-Shot Learning", ECCV 2020.

The paper's two corrections, each with a safeguard (docs/plus.md has the equations):

* The shift supposes that support and queries hold the classes in the same proportions. If they
  do, the difference of the two means is sampling noise, whose size follows from the scatter within
  the classes. The more it exceeds that size, the less of it is taken for bias.
* Queries join the prototypes in several rounds, each time only the most confident few of every
  class, weighted by how sure they are. Pseudo-labels are wrong together, so n of them count as
  much as the square root of n labelled samples.

Support and queries are seen from the centre of the support.

Assumes nothing of class sizes and bears foreign queries; it needs no more than a pile to look at.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect.functional import (
    Features,
    basic_prototypes,
    confident_queries,
    membership,
    predictions,
)
from protorect.options import check_number, check_whole
from protorect.unitrows import UnitRows


@dataclass(frozen=True)
class PlusOptions:
    """The choices of BD-CSPN-plus; one set of defaults for all tasks.

    Parameters
    ----------
    rounds
        How often queries are chosen and prototypes made from them.
    joining
        How many queries at most join a class in a round.
    scale
        Factor of the cosines in a query's softmax over the classes.
    power
        A query weighs its softmax raised to this; above 1, doubtful ones count less.
    caution
        The share of the shift is (expected / observed squared length) raised to this; 0 is the
        whole shift, as in the paper.
    """

    rounds: int = 3
    joining: int = 12
    scale: float = 10.0
    power: float = 2.0
    caution: float = 6.0

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 0)
        check_whole("joining", self.joining, 1)
        for name in ("scale", "power", "caution"):
            check_number(name, getattr(self, name))


def bd_cspn_plus(
    support: Features, labels: Tensor, query: Features, ways: int, options: PlusOptions
) -> Tensor:
    """Scores (tasks, n_query, ways): cosines with the prototypes of the last round."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    members = membership(labels, ways).to(support.scale.dtype)
    prototypes = basic_prototypes(support, labels, ways)
    centre = prototypes.mean(dim=-2)  # (tasks, dim), every class alike, however many shots it has
    shift = centre - query.mean()
    share = trust(support, members, query, prototypes, shift, options.caution)
    support, query = support.shifted(-centre), query.shifted(share * shift - centre)

    labelled = support.weighted_sum(members.expand(*support.scale.shape, ways))
    scores = query.cosines(labelled)
    for _ in range(options.rounds):
        places, taken = confident_queries(scores, options.joining)
        weights = joining_weights(scores, places, taken, options)
        scores = query.cosines(query.weighted_sum_at(places, weights).add_(labelled))
    return scores


def trust(
    support: UnitRows,
    members: Tensor,
    query: UnitRows,
    prototypes: Tensor,
    shift: Tensor,
    caution: float,
) -> Tensor:
    """How much of the shift is taken for bias, (tasks, 1) in 0 .. 1.

    `members` (n_support, ways) or (tasks, n_support, ways) is 1 where a sample has the class.
    """
    n_query, ways = query.scale.shape[-1], prototypes.shape[-2]
    if n_query < ways:  # these cannot hold every class, so their mean is no centre
        return torch.zeros_like(shift[..., :1])
    shots = members.sum(dim=-2)  # (..., ways)
    predicted = membership(predictions(query.cosines(prototypes)), ways).to(shift.dtype)
    sums = query.weighted_sum(predicted).addcmul_(prototypes, shots.unsqueeze(-1))
    counts = shots + predicted.sum(dim=-2)  # (tasks, ways)
    lengths = (support.scale > 0).sum(dim=-1) + (query.scale > 0).sum(dim=-1)  # squared, in all
    scatter = lengths - (sums.square().sum(dim=-1) / counts).sum(dim=-1)  # (tasks,)
    variance = scatter.clamp_min(0) / (counts.sum(dim=-1) - ways)  # of a sample in its class
    expected = variance * (shots.reciprocal().sum(dim=-1) / ways**2 + 1 / n_query)
    observed = shift.square().sum(dim=-1).clamp_min(torch.finfo(shift.dtype).tiny)
    return (expected / observed).clamp(max=1).pow(caution).unsqueeze(-1)


def joining_weights(scores: Tensor, places: Tensor, taken: Tensor, options: PlusOptions) -> Tensor:
    """What each chosen query weighs in its class, (tasks, joining, ways).

    Against the surest of the class, and so that together they count as the root of their number.
    """
    sure = torch.log_softmax(options.scale * scores, dim=-1).gather(-2, places)
    sure = torch.where(taken, sure, -torch.inf)
    surest = sure.amax(dim=-2, keepdim=True).clamp_min(torch.finfo(sure.dtype).min)
    weights = (options.power * (sure - surest)).exp()
    weights = torch.where(taken, weights, 0.0)  # a power of 0 counts all alike, but only those
    return weights / weights.sum(dim=-2, keepdim=True).clamp_min(1).sqrt()
