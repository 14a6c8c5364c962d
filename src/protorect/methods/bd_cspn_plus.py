"""BD-CSPN-plus: two readings of the pile, and the evidence that decides between them.

Developed here, from Liu, Song, Qin: "Prototype Rectification for Few-Shot Learning", ECCV 2020.

What rectifies best depends on what nobody knows, whether the queries hold the classes equally
(docs/plus.md has the equations):

* The wary reading supposes nothing. Queries join the prototypes in several rounds, each time only
  the most confident few of every class, weighted by how sure they are. Pseudo-labels are wrong
  together, so n of them count as much as the square root of n labelled samples.
* The equal reading shares the queries out so that every class gets as many. That removes the
  cross-class bias better than the paper's shift does, where it is true.

How far the equal reading is followed comes from the queries: from how much more likely they are
under proportions of their own. A ridge regression to what the two readings say of the queries, a
few steps from the prototypes, gives the answer. With few classes it is better than prototypes, with
many it depends on the features: where classes have several labelled samples, half of them are held
out to see.

Assumes nothing of class sizes and bears foreign queries; it needs no more than a pile to look at.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from protorect._utils.parameters import check_flag, check_number, check_whole
from protorect.core.functional import Features, confident_queries, membership
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.blocks import member_shares
from protorect.methods._solvers.conjugate_gradient import fitted
from protorect.methods._solvers.gram import Span, centred_span
from protorect.methods._solvers.sinkhorn import (
    equal_potentials,
    evidence_of_unequal_classes,
    shared_equally,
)

_OF_CLASSES = 0.85  # power of their number in the evidence that is borne
_DECISIVE, _FAVOUR = 2.0, 1.0  # of held-out support, and for the regression before it is asked


@dataclass(frozen=True)
class PlusOptions:
    """The choices of BD-CSPN-plus; one set of defaults for all tasks.

    Parameters
    ----------
    rounds
        How often the wary reading chooses queries and makes prototypes from them.
    joining
        How many queries at most join a class in a round.
    scale
        Factor of the cosines in a query's softmax over the classes.
    power
        A query weighs its softmax raised to this; above 1, doubtful ones count less.
    sharpness
        Factor of the cosines where the classes share the queries equally.
    tolerance
        Evidence against equal classes at which the equal reading's share has fallen to 1/e, a
        factor of the root of the number of queries and of a power of the number of classes; a tiny
        one never follows it, a huge one always.
    penalty
        What the regression's squared weights are multiplied by.
    steps
        How many steps the regression takes; 1 leaves weighted prototypes.
    held_out
        Whether support that is held out says how far the regression is followed; else it is.
    """

    rounds: int = 3
    joining: int = 12
    scale: float = 10.0
    power: float = 2.0
    sharpness: float = 20.0
    tolerance: float = 0.031
    penalty: float = 1.0
    steps: int = 5
    held_out: bool = True

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 1)
        check_whole("joining", self.joining, 1)
        check_whole("steps", self.steps, 1)
        check_flag("held_out", self.held_out)
        check_number("sharpness", self.sharpness, most=100.0, least=0.01)
        check_number("tolerance", self.tolerance, least=1e-6)
        for name in ("scale", "power", "penalty"):
            check_number(name, getattr(self, name))


def bd_cspn_plus(
    support: Features, labels: Tensor, query: Features, ways: int, options: PlusOptions
) -> Tensor:
    """Scores (tasks, n_query, ways): cosines, corrected by what the classes may claim."""
    support, query = evened_out(support, query)
    n_support = support.scale.shape[-1]
    members = membership(labels, ways).mT.to(support.scale.dtype)
    members = members.expand(len(support.rows), ways, n_support)
    every_class_alike = member_shares(members).mean(dim=-2, keepdim=True)
    span = centred_span(support, query, every_class_alike)
    targets, weights, share = soft_labels(span, members, options)
    found = fitted(span, targets, weights, options.penalty, options.steps)
    trust = trust_in_regression(span.first(n_support), members, options)
    scores = torch.lerp(found.sums, found.directions, trust)[..., n_support:]
    return (scores + share * equal_potentials(scores, options.sharpness)).mT


def soft_labels(span: Span, members: Tensor, options: PlusOptions) -> tuple[Tensor, Tensor, Tensor]:
    """What the regression is to answer for each sample, how much that counts, and the equal share.

    `members` (tasks, ways, n_support) is 1 where a sample belongs to a class. Returns targets
    (tasks, ways, n) that sum to zero over the classes, weights (tasks, 1, n), and (tasks, 1, 1).
    """
    n_support, ways = members.shape[-1], members.shape[-2]
    labelled = span.combined(span.padded(members))
    scores = span.cosines(labelled)[..., n_support:]
    wary, joined = wary_reading(span, labelled, scores, options)
    equal, share = equal_reading(span, labelled, scores, options)
    # Where the equal reading is right all queries count, once more n of a class as the root of n.
    all_alike = torch.full_like(joined, (ways / joined.shape[-1]) ** 0.5)
    targets = torch.cat([members, wary.lerp_(equal, share)], dim=-1).sub_(1 / ways)
    weights = torch.cat([even_weights(members), joined.lerp_(all_alike, share)], dim=-1)
    return targets, weights, share


def evened_out(support: Features, query: Features) -> tuple[UnitRows, UnitRows]:
    """Unit rows of the features, or of their roots in tasks where no feature is negative.

    Features behind a rectifier are skewed: a few large entries speak for the whole picture. Their
    roots are not (Hu, Gripon, Pateux: "Leveraging the Feature Distribution in Transfer-based
    Few-Shot Learning", ICANN 2021). Those that may be negative need no such thing.
    """
    parts = [UnitRows.raw(part).rows for part in (support, query)]
    rectified = torch.stack([part.amin(dim=(-2, -1)) >= 0 for part in parts]).all(dim=0)
    if not rectified.any():
        return UnitRows.of(support), UnitRows.of(query)
    # The root of exactly 0 takes many times as long as that of any other number.
    roots = [part.clamp_min(torch.finfo(part.dtype).tiny).sqrt_() for part in parts]
    if not rectified.all():
        chosen = rectified[:, None, None]
        roots = [torch.where(chosen, *pair) for pair in zip(roots, parts, strict=True)]
    support, query = (UnitRows.of(part) for part in roots)
    return support, query


def wary_reading(
    span: Span, labelled: Tensor, scores: Tensor, options: PlusOptions
) -> tuple[Tensor, Tensor]:
    """What the confident few make of the queries: probabilities, and each query's weight.

    `labelled` are the sums of the support samples, `scores` (tasks, ways, n_query) the queries'
    cosines with them. Returns (tasks, ways, n_query) and (tasks, 1, n_query); what did not join in
    the last round weighs nothing.
    """
    for _ in range(options.rounds):
        joined = joining_weights(scores, options)
        scores = rectified_cosines(span, labelled, joined)
    return _log_probabilities(scores, options.scale).exp_(), joined.sum(dim=-2, keepdim=True)


def joining_weights(scores: Tensor, options: PlusOptions) -> Tensor:
    """What each query weighs in each class, (tasks, ways, n_query); most are 0.

    Against the surest of the class, and so that together they count as the root of their number.
    """
    places, taken = (found.mT for found in confident_queries(scores.mT, options.joining))
    sure = _log_probabilities(scores, options.scale).gather(-1, places)
    sure = torch.where(taken, sure, -torch.inf)
    surest = sure.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(sure.dtype).min)
    weights = (options.power * (sure - surest)).exp()
    weights = torch.where(taken, weights, 0.0)  # a power of 0 counts all alike, but only those
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1).sqrt()
    return torch.zeros_like(scores).scatter_add_(-1, places, weights)


def equal_reading(
    span: Span, labelled: Tensor, scores: Tensor, options: PlusOptions
) -> tuple[Tensor, Tensor]:
    """What equal classes would make of the queries, and how far that is to be followed.

    Returns probabilities (tasks, ways, n_query) and a share (tasks, 1, 1) in 0 .. 1. The evidence
    is taken after one round: more of them bend the prototypes until equal classes look right.
    """
    ways, n_query = scores.shape[-2:]
    if n_query < ways:  # these cannot hold every class
        return torch.zeros_like(scores), torch.zeros_like(scores[:, :1, :1])
    said = shared_equally(scores, options.sharpness)
    scores = rectified_cosines(span, labelled, said)
    evidence = evidence_of_unequal_classes(scores, options.sharpness)
    # Where classes are unequal evidence grows with the pile, where they are equal it does not; and
    # with the proportions that are free, but the more of these the less each of them gains.
    bearable = options.tolerance * max(ways - 1, 1) ** _OF_CLASSES * n_query**0.5
    share = torch.exp(-evidence / bearable)
    if share.any():  # else nobody asks for a second round
        said = shared_equally(scores, options.sharpness)
        scores = rectified_cosines(span, labelled, said)
    return shared_equally(scores, options.sharpness), share


def rectified_cosines(span: Span, labelled: Tensor, weights: Tensor) -> Tensor:
    """The queries' cosines with prototypes that they have joined, (tasks, ways, n_query).

    `labelled` are the sums of the support samples, `weights` (tasks, ways, n_query) those of the
    queries.
    """
    n_support = span.n - weights.shape[-1]
    prototypes = span.combined(pad(weights, (n_support, 0))) + labelled
    return span.cosines(prototypes)[..., n_support:]


def trust_in_regression(support: Span, members: Tensor, options: PlusOptions) -> Tensor:
    """How far the regression is followed, (tasks, 1, 1) in 0 .. 1: what held-out support says.

    Each half of the support is classified by what is fitted to the other. How many samples more
    the regression gets right than the sums do, in units of what chance would make of those that
    only one of them does, is the argument of a logistic function that favours the regression.
    """
    place = (members.cumsum(dim=-1) * members).sum(dim=-2, keepdim=True)  # within its class, from 1
    if not options.held_out or place.max() < 2:
        return torch.ones_like(place[..., :1])
    halves = torch.stack([place % 2 == 0, place % 2 == 1], dim=1).to(members.dtype)
    weights = halves.expand(-1, -1, members.shape[-2], -1)  # (tasks, 2, ways, n)
    targets = (members - 1 / members.shape[-2]).unsqueeze(1).expand_as(weights)
    targets, of_all = targets.flatten(1, 2), weights.flatten(1, 2)  # as if they were more classes
    found = fitted(support, targets, of_all, options.penalty, options.steps)
    by_sums, by_regression = (_right(cosines.view_as(weights), members) for cosines in found)
    gained = ((by_regression - by_sums) * (1 - halves)).flatten(1)
    chance = gained.abs().sum(dim=-1).clamp_min(1).sqrt()
    return torch.sigmoid(_DECISIVE * gained.sum(dim=-1) / chance + _FAVOUR).view(-1, 1, 1)


def _right(cosines: Tensor, members: Tensor) -> Tensor:
    """1 where its class scores highest for a sample, else 0: (tasks, 2, 1, n)."""
    highest = cosines == cosines.amax(dim=-2, keepdim=True)
    return (highest * members.unsqueeze(1)).sum(dim=-2, keepdim=True)


def even_weights(members: Tensor) -> Tensor:
    """What the samples of the support weigh, (tasks, 1, n_support): every class the same in all."""
    shots = members.sum(dim=-1, keepdim=True)
    return member_shares(members).sum(dim=-2, keepdim=True) * shots.mean(dim=-2, keepdim=True)


def _log_probabilities(scores: Tensor, scale: float) -> Tensor:
    return torch.log_softmax(scale * scores, dim=-2)
