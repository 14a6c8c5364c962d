"""Similarity of samples to the classes, for out-of-distribution scores.

The similarity is the highest cosine with a prototype, after the mean of all samples, labeled and
unlabeled, has been subtracted: what all pictures have in common says nothing about the classes.

- The unlabeled samples most similar to a class join its prototype, because few examples show only a
  part of what a class looks like.
- A part of a sample's similarity is that of its nearest neighbors, because distractors are often
  similar to each other.
- The similarity is lower if the plain cosine, without centering, is much lower than is usual among
  the unlabeled samples, or if a sample known to be of no class is near.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import normalize

from protorect.core.functional import Features, membership
from protorect.core.power_transform import has_no_negatives, square_roots
from protorect.core.unit_rows import RawRows, evenly_spaced
from protorect.methods.rules import Rule, in_blocks

NEIGHBORS = 10  # nearest ones of a sample
OWN_WEIGHT = 0.4  # of a sample itself in its similarity; the rest is its neighbors'
MAX_JOINING = 8  # unlabeled samples that join a prototype; at most half of those nearest to it
SHORTFALL_WEIGHT = 5.0  # factor of the difference between the floor and a lower plain cosine
_FLOOR_DEVIATIONS = 2.5  # of the floor, below the median plain cosine of the unlabeled samples
# Factors of the deviation of the similarities of samples of the classes: their distribution has a
# longer lower tail than a normal one.
_DEVIATION_FACTOR = 1.15  # if it is that of many examples
_SMALL_SAMPLE_TERM = 8.0  # over the number of examples, added to that factor
_ONE_SHOT_FACTOR = 1.8  # with one example per class, if it is that of the unlabeled samples
_MAX_SEARCHED = 500  # unlabeled samples among which neighbors are searched
_SEARCHED_PER_CLASS = 15  # that maximum per class, if it is more
_IDENTICAL_COSINE = 1 - 1e-6  # of a sample with itself, allowing for rounding


@dataclass(frozen=True, eq=False)
class SimilarityRule(Rule):
    """Similarity of samples to the nearest class, (tasks, n, 1), about in -1 .. 1."""

    prototypes: Annotated[Tensor, "tasks ways dim"]  # of unit length, centered
    plain_prototypes: Annotated[Tensor, "tasks ways dim"]  # of unit length, not centered
    floor: Annotated[Tensor, "tasks"]  # a plain cosine below it lowers the similarity
    center: Annotated[Tensor, "tasks dim"]
    neighbors: Annotated[Tensor, "tasks neighbors dim"]  # unlabeled samples, likewise
    values: Annotated[Tensor, "tasks neighbors"]  # their similarities without their neighbors'
    unknown: Annotated[Tensor, "tasks unknown dim"]  # samples of no class, likewise
    square_root: Annotated[Tensor, "tasks"]  # whether square roots of features are taken

    def _score(self, samples: Features) -> Tensor:
        return in_blocks(self._similarity, RawRows.of(samples).rows)

    def _similarity(self, samples: Tensor) -> Tensor:
        unit = normalized(samples, self.square_root)
        rows = self.centered(unit)
        similarity = self.of_rows(rows, rows @ self.prototypes.mT)
        plain = (unit @ self.plain_prototypes.mT).amax(dim=-1)
        shortfall = (self.floor.unsqueeze(-1) - plain).clamp_min(0)
        return (similarity - SHORTFALL_WEIGHT * shortfall).unsqueeze(-1)

    def centered(self, unit: Tensor) -> Tensor:
        """Samples (tasks, n, dim) that are `normalized`, minus the center, of unit length again."""
        return normalize(unit - self.center.unsqueeze(1), dim=-1)

    def of_rows(self, rows: Tensor, cosines: Tensor) -> Tensor:
        """Similarities (tasks, n) of centered rows, from their cosines with the prototypes."""
        own = self.own_similarity(rows, cosines)
        if not self.neighbors.shape[1]:
            return own
        near = rows @ self.neighbors.mT
        nearest = near.topk(min(NEIGHBORS + 1, near.shape[-1]), dim=-1)
        valid = nearest.values <= _IDENTICAL_COSINE  # a sample is not its own neighbor
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
        # Less of it where the class is nearer: samples of no class may be similar to a class.
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
    some = unlabeled[evenly_spaced(len(unlabeled), max(_MAX_SEARCHED, _SEARCHED_PER_CLASS * ways))]
    unknown = some[:0] if unknown is None else unknown[evenly_spaced(len(unknown), _MAX_SEARCHED)]
    unknown = unknown.to(some.dtype)
    neighbors = torch.cat([some, unknown])
    rule = rule_without_neighbors(support, labels, neighbors, unknown)
    rows = rule.centered(normalized(neighbors[None], rule.square_root))[0]
    rule = replace(rule, prototypes=_rectified(rule.prototypes, rows[: len(some)]))
    values = rule.own_similarity(rows[None], rows @ rule.prototypes.mT)
    rule = replace(rule, neighbors=rows[None], values=values)
    return rule, *_distribution(rule, support, labels)


def centered_rows(support: Tensor, labels: Tensor, unlabeled: Tensor) -> Tensor:
    """The unlabeled samples (n, dim), centered as they are to compute similarities."""
    rule = rule_without_neighbors(support, labels, unlabeled)
    return rule.centered(normalized(unlabeled[None], rule.square_root))[0]


def rule_without_neighbors(
    support: Tensor, labels: Tensor, unlabeled: Tensor, unknown: Tensor | None = None
) -> SimilarityRule:
    """The rule of `fit_similarity` without neighbors; no unlabeled sample joined a prototype."""
    ways, parts = int(labels.max()) + 1, [support.to(unlabeled.dtype), unlabeled]
    square_root = has_no_negatives(*(part[None] for part in parts))
    unit_support, unit = (normalized(part[None], square_root)[0] for part in parts)
    center, floor = torch.zeros_like(unit_support[:1]), torch.full_like(unit_support[:1, 0], -1)
    members = membership(labels, ways).mT.to(unit.dtype)
    means = members @ unit_support / members.sum(dim=-1, keepdim=True)
    plain_prototypes = normalize(means, dim=-1)
    if len(unlabeled) >= 2 * ways:  # fewer would have a mean of their own
        center = torch.cat([unit_support, unit]).mean(dim=0, keepdim=True)
        median, deviation = _upper_half((unit @ plain_prototypes.T).amax(dim=-1))
        floor = floor.new_tensor([median - _FLOOR_DEVIATIONS * deviation])
    unknown = unlabeled[:0] if unknown is None else unknown.to(unlabeled.dtype)
    return SimilarityRule(
        normalize(means - center, dim=-1)[None],
        plain_prototypes[None],
        floor,
        center,
        unlabeled[None, :0],
        unlabeled[None, :0, 0],
        normalize(normalized(unknown[None], square_root) - center, dim=-1),
        square_root,
    )


def _rectified(prototypes: Tensor, rows: Tensor) -> Tensor:
    """Prototypes (1, ways, dim) that the most similar rows (n, dim) of each class have joined."""
    cosines = rows @ prototypes[0].T
    best, label = cosines.max(dim=-1) if len(rows) else (cosines[:, 0], cosines[:, 0].long())
    joined = prototypes.clone()
    for way in range(prototypes.shape[1]):
        members = (label == way).nonzero().flatten()
        most = min(MAX_JOINING, len(members) // 2)
        joined[0, way] += rows[members[best[members].argsort(descending=True)[:most]]].sum(dim=0)
    return normalize(joined, dim=-1)


def normalized(samples: Tensor, square_root: Tensor) -> Tensor:
    """Samples (tasks, n, dim), or their square roots, of unit length."""
    return normalize(square_roots(samples, square_root) if square_root.any() else samples, dim=-1)


def _distribution(rule: SimilarityRule, support: Tensor, labels: Tensor) -> tuple[float, float]:
    """Mean and deviation of the similarity of samples of the classes.

    Of the examples, each held out of its class mean; or, with one example per class, of the more
    similar half of the unlabeled samples and its mirror image, as there may be distractors.
    """
    dtype, ways = rule.prototypes.dtype, rule.prototypes.shape[1]
    members = membership(labels, ways)
    shots = members.sum(dim=0)
    several = (shots > 1)[labels]
    if int(several.sum()) > ways:
        unit = normalized(support[None].to(dtype), rule.square_root)[0]
        sums = members.T.to(dtype) @ unit
        others = (sums[labels] - unit)[several] / (shots[labels][several] - 1)[:, None]
        rows = normalize(unit[several] - rule.center, dim=-1)
        own = (rows * normalize(others - rule.center, dim=-1)).sum(dim=-1)
        cosines = (rows @ rule.prototypes[0].T).scatter(1, labels[several][:, None], own[:, None])
        similarity = rule.of_rows(rows[None], cosines[None])[0]
        mean, deviation = float(similarity.mean()), float(similarity.std())
        # Few samples say little about their deviation.
        factor = _DEVIATION_FACTOR + _SMALL_SAMPLE_TERM / len(similarity)
    elif rule.neighbors.shape[1] >= 2:
        similarity = rule.of_rows(rule.neighbors, rule.neighbors @ rule.prototypes.mT)[0]
        (mean, deviation), factor = _upper_half(similarity), _ONE_SHOT_FACTOR
    else:
        return 0.0, 1.0
    return mean, max(factor * deviation, 1e-3)


def _upper_half(values: Tensor) -> tuple[float, float]:
    """Mean and deviation of a normal distribution with the upper half of these values."""
    at = torch.tensor([0.5, 0.84], dtype=values.dtype)
    median, high = values.quantile(at).tolist()
    return median, high - median
