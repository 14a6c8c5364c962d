"""Similarity of samples to the classes, for out-of-distribution scores.

The cosine with a prototype after the mean of all samples, the unlabeled ones included, has been
subtracted: what all pictures of a set have in common says nothing about the classes, and samples of
no class are rather on the other side. The most similar unlabeled samples of a class join its
prototype: few examples show only a part of what a class looks like. A part of the similarity is
that of the nearest neighbors, because distractors are often similar to each other. Two things lower
it: a plain cosine with the class means far below that of the unlabeled samples, and samples nearby
that are known to be of no class.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import normalize

from protorect.core.functional import Features, membership
from protorect.core.unit_rows import RawRows
from protorect.methods.bd_cspn_plus import square_roots
from protorect.methods.rules import Rule, in_blocks
from protorect.uncertainty.held_out import thinned

NEIGHBORS = 10
OWN_WEIGHT = 0.4  # of a sample itself in its similarity; the rest is its neighbors'
JOINING = 8  # unlabeled samples that join a prototype, at most half of those nearest to it
FAR_WEIGHT = 5.0  # of what the plain cosine lacks
_FAR = 2.5  # deviations below the median plain cosine at which that begins
# Factors of the deviation of the similarities of samples of the classes: their distribution has a
# longer lower tail than a normal one.
_CAUTION, _FEW = 1.15, 8.0  # of examples: a constant, plus some over their number
_CAUTION_ONE = 1.8  # of the unlabeled samples, with one example per class
_ROWS, _PER_CLASS = 500, 15  # at most so many unlabeled samples are searched for neighbors
_SAME = 1 - 1e-6  # the cosine of a sample with itself, but for rounding


@dataclass(frozen=True, eq=False)
class SimilarityRule(Rule):
    """Similarity of samples to the nearest class, (tasks, n, 1), about in -1 .. 1."""

    prototypes: Annotated[Tensor, "tasks ways dim"]  # of unit length, centered
    plain_prototypes: Annotated[Tensor, "tasks ways dim"]  # of unit length, not centered
    floor: Annotated[Tensor, "tasks"]  # of the plain cosine; what is below it lacks something
    center: Annotated[Tensor, "tasks dim"]
    neighbors: Annotated[Tensor, "tasks neighbors dim"]  # unlabeled samples, likewise
    values: Annotated[Tensor, "tasks neighbors"]  # their similarities without their neighbors'
    unknown: Annotated[Tensor, "tasks unknown dim"]  # samples of no class, likewise
    square_root: Annotated[Tensor, "tasks"]  # whether square roots of features are taken

    def _score(self, samples: Features) -> Tensor:
        return in_blocks(self._similarity, RawRows.of(samples).rows)

    def _similarity(self, samples: Tensor) -> Tensor:
        unit = unit_rows(samples, self.square_root)
        rows = normalize(unit - self.center.unsqueeze(1), dim=-1)
        similarity = self.of_rows(rows, rows @ self.prototypes.mT)
        plain = (unit @ self.plain_prototypes.mT).amax(dim=-1)
        lacking = (self.floor.unsqueeze(-1) - plain).clamp_min(0)
        return (similarity - FAR_WEIGHT * lacking).unsqueeze(-1)

    def of_rows(self, rows: Tensor, cosines: Tensor) -> Tensor:
        """Similarities (tasks, n) of centered rows, from their cosines with the prototypes."""
        own = self.own_similarity(rows, cosines)
        if not self.neighbors.shape[1]:
            return own
        near = rows @ self.neighbors.mT
        nearest = near.topk(min(NEIGHBORS + 1, near.shape[-1]), dim=-1)
        valid = nearest.values <= _SAME  # a sample is not its own neighbor
        valid &= valid.cumsum(dim=-1) <= NEIGHBORS
        values = self.values.unsqueeze(1).expand_as(near).gather(-1, nearest.indices) * valid
        means = values.sum(dim=-1) / valid.sum(dim=-1).clamp_min(1)
        return OWN_WEIGHT * own + (1 - OWN_WEIGHT) * torch.where(valid.any(dim=-1), means, own)

    def own_similarity(self, rows: Tensor, cosines: Tensor) -> Tensor:
        """Similarities (tasks, n) of centered rows without those of their neighbors."""
        own = cosines.amax(dim=-1)
        if not self.unknown.shape[1]:
            return own
        nearest = (rows @ self.unknown.mT).amax(dim=-1).clamp_min(0)
        # Less of it where the class is nearer: samples of no class may be very like a class.
        share = ((1 - own) / (1 - nearest).clamp_min(1e-6)).clamp(0, 1)
        return own - share * nearest


def fit_similarity(
    support: Tensor, labels: Tensor, unlabeled: Tensor, unknown: Tensor | None = None
) -> tuple[SimilarityRule, float, float]:
    """The rule of one task, and mean and deviation of the similarity of samples of the classes.

    `support` is (n_support, dim), `unlabeled` (n, dim); `unknown` (m, dim) are samples that are
    known to be of no class: they are neighbors, too, but join no prototype.
    """
    ways = int(labels.max()) + 1
    some = unlabeled[thinned(len(unlabeled), max(_ROWS, _PER_CLASS * ways))]
    unknown = some[:0] if unknown is None else unknown[thinned(len(unknown), _ROWS)].to(some.dtype)
    rows, rule = centered_rows(support, labels, torch.cat([some, unknown]), unknown)
    rule = replace(rule, prototypes=_rectified(rule.prototypes, rows[: len(some)]))
    values = rule.own_similarity(rows[None], rows @ rule.prototypes.mT)
    rule = replace(rule, neighbors=rows[None], values=values)
    return rule, *_distribution(rule, support, labels)


def centered_rows(
    support: Tensor, labels: Tensor, unlabeled: Tensor, unknown: Tensor | None = None
) -> tuple[Tensor, SimilarityRule]:
    """The unlabeled samples (n, dim), centered, and the rule without any neighbors."""
    ways, parts = int(labels.max()) + 1, [support.to(unlabeled.dtype), unlabeled]
    square_root = torch.tensor([all(bool((part >= 0).all()) for part in parts)])
    unit_support, unit = (unit_rows(part[None], square_root)[0] for part in parts)
    center, floor = torch.zeros_like(unit_support[:1]), torch.full_like(unit_support[:1, 0], -1)
    members = membership(labels, ways).mT.to(unit.dtype)
    means = members @ unit_support / members.sum(dim=-1, keepdim=True)
    plain_prototypes = normalize(means, dim=-1)
    if len(unlabeled) >= 2 * ways:  # fewer would have a mean of their own
        center = torch.cat([unit_support, unit]).mean(dim=0, keepdim=True)
        median, deviation = _upper_half((unit @ plain_prototypes.T).amax(dim=-1))
        floor = floor.new_tensor([median - _FAR * deviation])
    unknown = unlabeled[:0] if unknown is None else unknown.to(unlabeled.dtype)
    rule = SimilarityRule(
        normalize(means - center, dim=-1)[None],
        plain_prototypes[None],
        floor,
        center,
        unlabeled[None, :0],
        unlabeled[None, :0, 0],
        normalize(unit_rows(unknown[None], square_root) - center, dim=-1),
        square_root,
    )
    return normalize(unit - center, dim=-1), rule


def _rectified(prototypes: Tensor, rows: Tensor) -> Tensor:
    """Prototypes (1, ways, dim) that the most similar rows (n, dim) of each class have joined."""
    cosines = rows @ prototypes[0].T
    best, label = cosines.max(dim=-1) if len(rows) else (cosines[:, 0], cosines[:, 0].long())
    joined = prototypes.clone()
    for way in range(prototypes.shape[1]):
        members = (label == way).nonzero().flatten()
        most = min(JOINING, len(members) // 2)
        joined[0, way] += rows[members[best[members].argsort(descending=True)[:most]]].sum(dim=0)
    return normalize(joined, dim=-1)


def unit_rows(samples: Tensor, square_root: Tensor) -> Tensor:
    """Samples (tasks, n, dim), or their square roots, of unit length."""
    return normalize(square_roots(samples, square_root) if square_root.any() else samples, dim=-1)


def _distribution(rule: SimilarityRule, support: Tensor, labels: Tensor) -> tuple[float, float]:
    """Mean and deviation of the similarity of samples of the classes.

    Of the examples, each left out of its class mean; or, with one example per class, of the more
    similar half of the unlabeled samples and its mirror image, as there may be distractors.
    """
    dtype, ways = rule.prototypes.dtype, rule.prototypes.shape[1]
    members = membership(labels, ways)
    shots = members.sum(dim=0)
    several = (shots > 1)[labels]
    if int(several.sum()) > ways:
        unit = unit_rows(support[None].to(dtype), rule.square_root)[0]
        sums = members.T.to(dtype) @ unit
        others = (sums[labels] - unit)[several] / (shots[labels][several] - 1)[:, None]
        rows = normalize(unit[several] - rule.center, dim=-1)
        own = (rows * normalize(others - rule.center, dim=-1)).sum(dim=-1)
        cosines = (rows @ rule.prototypes[0].T).scatter(1, labels[several][:, None], own[:, None])
        similarity = rule.of_rows(rows[None], cosines[None])[0]
        mean, deviation = float(similarity.mean()), float(similarity.std())
        # Few samples say little about their deviation.
        factor = _CAUTION + _FEW / len(similarity)
    elif rule.neighbors.shape[1] >= 2:
        similarity = rule.of_rows(rule.neighbors, rule.neighbors @ rule.prototypes.mT)[0]
        (mean, deviation), factor = _upper_half(similarity), _CAUTION_ONE
    else:
        return 0.0, 1.0
    return mean, max(factor * deviation, 1e-3)


def _upper_half(values: Tensor) -> tuple[float, float]:
    """Mean and deviation of a normal distribution with the upper half of these values."""
    at = torch.tensor([0.5, 0.84], dtype=values.dtype)
    median, high = values.quantile(at).tolist()
    return median, high - median
