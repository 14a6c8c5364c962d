"""A linear classifier between prototypes and ridge regression, weighted by cross-validation.

Where features separate the classes well, a regression is better than prototypes; with small
networks, or many classes, prototypes are often better. Only labels can show which: both are fitted
to one half of the support and classify the other half, and vice versa.
"""

import math
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from protorect.methods._solvers.blocks import class_mean_weights
from protorect.methods._solvers.conjugate_gradient import Directions, ridge
from protorect.methods._solvers.gram import Span

_PENALTY = 0.5  # of the regression
_PENALTY_SAMPLES = 50  # labeled samples above which the penalty grows
_GAIN_FACTOR = 2.0  # of the gain by the regression, in the logistic function that weights it
_GAIN_OFFSET = 2.0  # added to it: without any gain the regression is preferred


class Head(NamedTuple):
    """The support of some tasks, to which soft labels of queries can be added."""

    span: Span  # of the support and the queries, of unit length
    members: Tensor  # (tasks, ways, n_support), 1 or 0
    weights: Tensor  # (tasks, 1, n_support), the same total for every class
    class_sums: Tensor  # directions: the sums of the support samples of each class
    regression_weight: Tensor  # (tasks, 1, 1), of the regression against the prototypes
    iterations: int  # of the regression

    @classmethod
    def of(cls, span: Span, members: Tensor, iterations: int, held_out: bool) -> Self:
        """The head of a support; without `held_out` it is always the regression."""
        shots = members.sum(dim=-1, keepdim=True).mean(dim=-2, keepdim=True)
        weights = class_mean_weights(members).sum(dim=-2, keepdim=True) * shots
        of_regression = torch.ones_like(shots)
        if held_out:
            of_regression = regression_weight(span.first(members.shape[-1]), members, iterations)
        class_sums = span.combine(span.pad_queries(members))
        return cls(span, members, weights, class_sums, of_regression, iterations)

    def prototype_cosines(self, weights: Tensor) -> Tensor:
        """Cosines (tasks, ways, n_query) with prototypes that queries join by such weights.

        The prototypes are the sums of the support samples plus those of the queries.
        """
        joined = self.span.combine(pad(weights, (self._n_support, 0)))
        return self._of_queries(self.span.cosines_by_class(joined + self.class_sums))

    def cosines(self, p: Tensor, weights: Tensor) -> Tensor:
        """Cosines (tasks, ways, n_query) after the queries joined by weights of that shape.

        Their labels p (tasks, ways, n_query) are the targets of the regression.
        """
        cosines = self.prototype_cosines(weights)
        if self.iterations == 1:  # the regression would be prototypes, too
            return cosines
        _, regression = self.solve(p, weights.sum(dim=-2, keepdim=True))
        return torch.lerp(cosines, self._of_queries(regression.cosines), self.regression_weight)

    def solve(self, p: Tensor, weights: Tensor) -> tuple[Directions, Directions]:
        """The prototypes and the regression to the labels of support and queries.

        p are (tasks, ways, n_query), the weights of the queries (tasks, 1, n_query).
        """
        targets = torch.cat([self.members, p], dim=-1).sub_(1 / self.members.shape[-2])
        weights = torch.cat([self.weights, weights], dim=-1)
        return ridge(self.span, targets, weights, penalty(self._n_support), self.iterations)

    @property
    def _n_support(self) -> int:
        return self.members.shape[-1]

    def _of_queries(self, cosines: Tensor) -> Tensor:
        return cosines[..., self._n_support :]


def penalty(n_support: int) -> float:
    """The penalty of a regression on so many labeled samples."""
    return _PENALTY * math.sqrt(max(1.0, n_support / _PENALTY_SAMPLES))


def regression_weight(support: Span, members: Tensor, iterations: int) -> Tensor:
    """Weight of the regression against the prototypes, (tasks, 1, 1) in 0 .. 1.

    Two-fold cross-validation on the support: the number of samples that the regression classifies
    correctly minus that of the prototypes, in units of its standard deviation by chance, is the
    argument of a logistic function that favors the regression. Without two samples of a class the
    weight is 1/2.
    """
    ways = members.shape[-2]
    if members.sum(dim=-1).max() < 2:
        return members.new_full((len(members), 1, 1), 0.5)
    rank = _rank_within_class(support, members).unsqueeze(-2)
    folds = torch.stack([rank % 2 == 1, rank % 2 == 0], dim=1).to(members.dtype)
    known = folds * members.unsqueeze(1)  # (tasks, 2, ways, n)
    shots = known.sum(dim=-1, keepdim=True)
    weights = (known / shots.clamp_min(1)).sum(dim=-2, keepdim=True)
    weights = (weights * shots.clamp_min(1).mean(dim=-2, keepdim=True)).expand_as(known)
    targets = (members - 1 / ways).unsqueeze(1).expand_as(weights)
    # Both folds are fitted at once, as if they were more classes.
    flat = targets.flatten(1, 2), weights.flatten(1, 2)
    fit = ridge(support, *flat, penalty(members.shape[-1]), iterations)
    by_prototypes, by_regression = (_correct(one.cosines.view_as(weights), members) for one in fit)
    # A held-out sample counts if its class has another one.
    counts = (members.unsqueeze(1) * (shots > 0)).sum(dim=-2, keepdim=True) * (1 - folds)
    gain = ((by_regression - by_prototypes) * counts).flatten(1)
    deviation = gain.abs().sum(dim=-1).clamp_min(1).sqrt()
    return torch.sigmoid(_GAIN_FACTOR * gain.sum(dim=-1) / deviation + _GAIN_OFFSET).view(-1, 1, 1)


def _rank_within_class(support: Span, members: Tensor) -> Tensor:
    """Position of each sample in its class, (tasks, n), the nearest to another class first.

    So the folds do not depend on the order in which the samples are given.
    """
    labels = members.argmax(dim=-2)
    cosines = support.cosines_by_class(support.combine(members))
    nearest = cosines.masked_fill(members > 0, -1).amax(dim=-2)
    order = (4 * labels.double() - nearest).argsort(dim=-1, stable=True)  # by class, then by cosine
    shots = members.sum(dim=-1).long()
    starts = (shots.cumsum(dim=-1) - shots).gather(-1, labels.gather(-1, order))
    ranks = torch.arange(labels.shape[-1], device=labels.device) - starts
    return torch.empty_like(labels).scatter_(-1, order, ranks)


def _correct(cosines: Tensor, members: Tensor) -> Tensor:
    """1 where a sample's own class scores highest, else 0: (tasks, 2, 1, n)."""
    highest = cosines == cosines.amax(dim=-2, keepdim=True)
    return (highest * members.unsqueeze(1)).sum(dim=-2, keepdim=True)
