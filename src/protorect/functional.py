"""The paper's equations as pure functions, batched over a leading task axis.

Shapes, in the words of the field:

    support      (tasks, n_support, dim)
    labels       (tasks, n_support) or (n_support,), whole numbers 0 .. ways - 1
    query        (tasks, n_query, dim)
    prototypes   (tasks, ways, dim)
    scores       (tasks, n_query, ways), cosines

Features may be of any length and of any floating type; they are normalised here, and computed
with in float32 or better. Equation numbers are those of "Prototype Rectification for Few-Shot
Learning" (Liu, Song, Qin, ECCV 2020); `docs/method.md` maps its symbols to these names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from protorect.errors import OptionError, unknown_name
from protorect.unitrows import UnitRows

Features = Tensor | UnitRows
Weighting = Literal["samples", "classes"]
Rank = Literal["cosine", "softmax"]
Assignment = Literal["predicted", "overlapping"]


@dataclass(frozen=True)
class Options:
    """The choices of prototype rectification; the defaults are BD-CSPN as printed.

    Parameters
    ----------
    z
        How many pseudo-labelled queries may join each class (Z); None for no limit; 0 leaves the
        basic prototypes as they are.
    epsilon
        Sharpness of the weights, eq. (6).
    weighting
        "samples": eq. (6) as printed, a softmax over the samples of one class. "classes": each
        sample's softmax over the classes, normalised within the class.
    shift
        Whether the queries are shifted by xi, eq. (8).
    rank
        What "most confident" means: the "cosine" to the class, or the "softmax" over the classes.
    assignment
        "predicted": a query can only join the class it is predicted as. "overlapping": the Z
        queries that score highest for a class join it, whatever they are predicted as.
    scale
        The factor of the cosines in the "softmax" rank, tau of eq. (1).
    """

    z: int | None = 8
    epsilon: float = 10.0
    weighting: Weighting = "samples"
    shift: bool = True
    rank: Rank = "cosine"
    assignment: Assignment = "predicted"
    scale: float = 10.0

    def __post_init__(self) -> None:
        _check_choice("weighting", self.weighting, ("samples", "classes"))
        _check_choice("rank", self.rank, ("cosine", "softmax"))
        _check_choice("assignment", self.assignment, ("predicted", "overlapping"))
        if not (self.z is None or self.z >= 0):
            raise OptionError(f"z is {self.z}; it must be 0 or more, or None for no limit.")
        for name in ("epsilon", "scale"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise OptionError(f"{name} is {getattr(self, name)}; it must be 0 or more.")


class Rectified(NamedTuple):
    """What `rectify` finds: prototypes (tasks, ways, dim), shift (tasks, dim) or None, scores."""

    prototypes: Tensor
    shift: Tensor | None
    scores: Tensor


def normalize(features: Tensor) -> Tensor:
    """Every feature (..., dim) brought to length one, X-bar of eq. (3); a zero one stays zero."""
    return UnitRows.of(features).materialise()


def membership(labels: Tensor, ways: int) -> Tensor:
    """Which sample belongs to which class, (..., n_support) -> (..., n_support, ways), bool."""
    return labels.unsqueeze(-1) == torch.arange(ways, device=labels.device)


def basic_prototypes(support: Features, labels: Tensor, ways: int) -> Tensor:
    """Mean of the normalised support features of each class, eq. (3)."""
    support = UnitRows.of(support)
    members = membership(labels, ways).to(support.scale.dtype)
    return support.weighted_sum(members / members.sum(dim=-2, keepdim=True))


def cross_class_shift(support: Features, query: Features) -> Tensor:
    """xi (tasks, dim), from the mean of the queries to the mean of the support, eq. (8)."""
    return UnitRows.of(support).mean() - UnitRows.of(query).mean()


def cosine_scores(query: Features, prototypes: Tensor) -> Tensor:
    """Cosine of every query with every prototype, (tasks, n_query, ways)."""
    return UnitRows.of(query).cosines(prototypes)


def predictions(scores: Tensor) -> Tensor:
    """The class that scores highest, (tasks, n_query, ways) -> (tasks, n_query)."""
    return scores.max(dim=-1).indices  # many times faster than argmax on this layout


def probabilities(scores: Tensor, scale: float = 10.0) -> Tensor:
    """softmax(scale x cosine) over the classes, eq. (1)."""
    return torch.softmax(scale * scores, dim=-1)


def confident_queries(
    scores: Tensor,
    z: int | None,
    *,
    rank: Rank = "cosine",
    assignment: Assignment = "predicted",
    scale: float = 10.0,
) -> Tensor:
    """Which queries join which class: the Z most confident of each, (tasks, n_query, ways), bool.

    A class that fewer than Z queries are predicted as takes those, or none.
    """
    n_query, ways = scores.shape[-2:]
    limit = n_query if z is None else min(z, n_query)
    confidence = torch.log_softmax(scale * scores, dim=-1) if rank == "softmax" else scores
    if assignment == "predicted":
        predicted = membership(predictions(scores), ways)
        if limit == n_query:
            return predicted
        confidence = confidence.masked_fill(~predicted, -torch.inf)
    top = confidence.topk(limit, dim=-2, sorted=False)
    nobody = torch.zeros_like(confidence, dtype=torch.bool)
    return nobody.scatter_(-2, top.indices, top.values > -torch.inf)


def sample_weights(
    scores: Tensor, members: Tensor, epsilon: float, weighting: Weighting = "samples"
) -> Tensor:
    """Weight of every sample of the augmented support S' in each class, eq. (6).

    Parameters
    ----------
    scores
        (tasks, n, ways), cosines of the samples with the basic prototypes.
    members
        (tasks, n, ways), bool: which sample is in which class's augmented support.
    epsilon
        Sharpness.
    weighting
        "samples" is the equation as printed; "classes" starts from each sample's softmax over
        the classes instead.

    Returns
    -------
    Tensor
        (tasks, n, ways); each class's weights sum to one, 0 outside it.
    """
    logits = epsilon * scores
    if weighting == "classes":
        logits = torch.log_softmax(logits, dim=-1)
    return torch.softmax(logits.masked_fill(~members, -torch.inf), dim=-2)


def rectified_prototypes(
    support: Features,
    labels: Tensor,
    query: Features,
    query_scores: Tensor,
    prototypes: Tensor,
    options: Options,
) -> Tensor:
    """Weighted sum of the support and the most confident queries of each class, eq. (5).

    `query_scores` are the cosines of the queries with `prototypes`, the basic ones.
    """
    support, query = UnitRows.of(support), UnitRows.of(query)
    n_support, ways = support.scale.shape[-1], prototypes.shape[-2]
    joined = confident_queries(
        query_scores,
        options.z,
        rank=options.rank,
        assignment=options.assignment,
        scale=options.scale,
    )
    support_scores = support.cosines(prototypes)
    labelled = membership(labels, ways).expand_as(support_scores)
    weights = sample_weights(
        _stacked(support_scores, query_scores),
        _stacked(labelled, joined),
        options.epsilon,
        options.weighting,
    )
    of_support, of_query = weights[..., :n_support, :], weights[..., n_support:, :]
    return support.weighted_sum(of_support) + query.weighted_sum(of_query)


def rectify(
    support: Features, labels: Tensor, query: Features, ways: int, options: Options
) -> Rectified:
    """Shift the queries, rectify the prototypes once, classify the shifted queries by cosine."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    prototypes = basic_prototypes(support, labels, ways)
    shift = None
    if options.shift:
        shift = cross_class_shift(support, query)
        query, scores = query.shifted_cosines(shift, prototypes)
    else:
        scores = query.cosines(prototypes)
    if options.z != 0:
        prototypes = rectified_prototypes(support, labels, query, scores, prototypes, options)
        scores = query.cosines(prototypes)
    return Rectified(prototypes, shift, scores)


def _stacked(support: Tensor, query: Tensor) -> Tensor:
    """S' = S and Q one after the other, (tasks, n, ways), the samples of a class side by side."""
    return torch.cat([support.mT, query.mT], dim=-1).mT


def _check_choice(name: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise unknown_name(name, str(given), allowed)
