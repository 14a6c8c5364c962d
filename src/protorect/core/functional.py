"""The paper's equations as pure functions, batched over a leading task axis.

Shapes:

    support      (tasks, n_support, dim)
    labels       (tasks, n_support) or (n_support,), whole numbers 0 .. ways - 1
    query        (tasks, n_query, dim)
    prototypes   (tasks, ways, dim)
    scores       (tasks, n_query, ways), cosines

Features may have any norm and any floating type; they are normalized here, and computed with in
float32 or better. Equation numbers are those of "Prototype Rectification for Few-Shot
Learning" (Liu, Song, Qin, ECCV 2020); `docs/method.md` maps its symbols to these names.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.unit_rows import Rows, UnitRows

Features = Tensor | UnitRows
Weighting = Literal["samples", "classes"]
Rank = Literal["cosine", "softmax"]
Assignment = Literal["predicted", "overlapping"]


class Options(Parameters):
    """The choices of prototype rectification; the defaults are BD-CSPN as printed."""

    z: int | None = parameter(
        8,
        "Number of pseudo-labeled queries that may join each class (Z); None for no limit; 0 for "
        "the basic prototypes.",
    )
    epsilon: float = parameter(10.0, "Sharpness of the weights, eq. (6).")
    weighting: Weighting = parameter(
        "samples",
        '"samples": eq. (6) as printed, a softmax over the samples of one class. "classes": each '
        "sample's softmax over the classes, normalized within the class.",
    )
    shift: bool = parameter(True, "Whether the queries are shifted by xi, eq. (8).")
    rank: Rank = parameter(
        "cosine",
        'What "most confident" means: the "cosine" to the class, or the "softmax" over the '
        "classes.",
    )
    assignment: Assignment = parameter(
        "predicted",
        '"predicted": a query can only join the class it is predicted as. "overlapping": the Z '
        "queries that score highest for a class join it, whatever they are predicted as.",
    )
    scale: float = parameter(
        10.0, 'The factor of the cosines in the "softmax" rank, tau of eq. (1).'
    )


class Rectified(NamedTuple):
    """Result of `rectify`: prototypes (tasks, ways, dim), shift (tasks, dim) or None, scores."""

    prototypes: Tensor
    shift: Tensor | None
    scores: Tensor


def normalize(features: Tensor) -> Tensor:
    """Features (..., dim) scaled to norm one, X-bar of eq. (3); a zero one stays zero."""
    return UnitRows.of(features).materialize()


def membership(labels: Tensor, ways: int) -> Tensor:
    """One-hot labels, (..., n_support) -> (..., n_support, ways), bool."""
    return labels.unsqueeze(-1) == torch.arange(ways, device=labels.device)


def basic_prototypes(support: Features, labels: Tensor, ways: int) -> Tensor:
    """Mean of the normalized support features of each class, eq. (3)."""
    return class_means(UnitRows.of(support), labels, ways)


def class_means(rows: Rows, labels: Tensor, ways: int) -> Tensor:
    """Mean of the rows of each class, (tasks, ways, dim)."""
    members = membership(labels, ways).to(rows.dtype)
    return rows.weighted_sum(members / members.sum(dim=-2, keepdim=True))


def cross_class_shift(support: Features, query: Features) -> Tensor:
    """xi (tasks, dim), from the mean of the queries to the mean of the support, eq. (8)."""
    return UnitRows.of(support).mean() - UnitRows.of(query).mean()


def predictions(scores: Tensor) -> Tensor:
    """The class that scores highest, (tasks, n_query, ways) -> (tasks, n_query)."""
    return scores.max(dim=-1).indices  # many times faster than argmax in this memory layout


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
) -> tuple[Tensor, Tensor]:
    """The Z most confident queries of each class.

    Returns their positions (tasks, Z, ways), and a mask of that shape that is False where a class
    has fewer than Z queries.
    """
    limit = scores.shape[-2] if z is None else min(z, scores.shape[-2])
    confidence = torch.log_softmax(scale * scores, dim=-1) if rank == "softmax" else scores
    if assignment == "overlapping":
        positions = confidence.topk(limit, dim=-2).indices
        return positions, torch.ones_like(positions, dtype=torch.bool)
    return _most_confident(confidence, limit)


def _most_confident(confidence: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """Among the queries predicted as a class, the first `limit` by confidence; ties in order."""
    n_query, ways = confidence.shape[-2:]
    highest, predicted = confidence.max(dim=-1)  # (tasks, n_query)
    # One sort orders by class, then by confidence. Cosines lie in -1 .. 1, and the highest of the
    # log-probabilities of some ways in -log(ways) .. 0: classes 64 apart do not overlap. A prior
    # leaves the highest cosine in -1 .. 1, because its own highest is 0.
    order = (64 * predicted.double() - highest).argsort(dim=-1, stable=True)
    counts = predicted.new_zeros(*predicted.shape[:-1], ways)
    counts.scatter_add_(-1, predicted, torch.ones_like(predicted))  # (tasks, ways)
    starts = counts.cumsum(dim=-1) - counts
    steps = torch.arange(limit, device=counts.device).unsqueeze(-1)  # (Z, 1)
    positions = (starts.unsqueeze(-2) + steps).clamp_(max=n_query - 1)  # (tasks, Z, ways)
    return order.gather(-1, positions.flatten(-2)).view_as(positions), steps < counts.unsqueeze(-2)


def log_weights(
    scores: Tensor,
    epsilon: float,
    weighting: Weighting = "samples",
    positions: Tensor | None = None,
) -> Tensor:
    """Logarithm of the weight of a sample in a class before normalization, eq. (6).

    `scores` (tasks, n, ways) are the cosines of samples with the basic prototypes. With `positions`
    (tasks, k, ways), the weights are those of the samples at these positions.
    """
    at = scores if positions is None else scores.gather(-2, positions)
    if weighting == "samples":  # the numerator as printed
        return epsilon * at
    # the sample's softmax over the classes
    evidence = torch.logsumexp(epsilon * scores, dim=-1, keepdim=True).expand_as(scores)
    return epsilon * at - (evidence if positions is None else evidence.gather(-2, positions))


def sample_weights(logits: Tensor, members: Tensor) -> Tensor:
    """Weights normalized over the samples of each class, eq. (6), (tasks, n, ways).

    `logits` are `log_weights`; `members` says which sample is in the augmented support S' of which
    class. The weights of a class sum to one, and are 0 outside its S'.
    """
    return torch.softmax(torch.where(members, logits, -torch.inf), dim=-2)


def augmented_weights(
    support: Features,
    labels: Tensor,
    query_scores: Tensor,
    prototypes: Tensor,
    options: Options,
) -> tuple[Tensor, Tensor, Tensor]:
    """Samples of each class's augmented support S' and their weights, eq. (6).

    Returns the weights of the support (tasks, n_support, ways), those of the queries that join
    (tasks, Z, ways), 0 where a class has fewer than Z, and the positions of these queries.
    """
    support = UnitRows.of(support)
    n_support, ways = support.scale.shape[-1], prototypes.shape[-2]
    positions, taken = confident_queries(
        query_scores,
        options.z,
        rank=options.rank,
        assignment=options.assignment,
        scale=options.scale,
    )
    support_scores = support.cosines(prototypes)
    support_logits = log_weights(support_scores, options.epsilon, options.weighting)
    query_logits = log_weights(query_scores, options.epsilon, options.weighting, positions)
    labeled = membership(labels, ways).expand_as(support_logits)
    weights = sample_weights(  # of S': the support, then the queries that join it
        torch.cat([support_logits, query_logits], dim=-2),
        torch.cat([labeled, taken], dim=-2),
    )
    return weights[..., :n_support, :], weights[..., n_support:, :], positions


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
    support_weights, query_weights, positions = augmented_weights(
        support, labels, query_scores, prototypes, options
    )
    total = query.weighted_sum_at(positions, query_weights)
    return total.add_(support.weighted_sum(support_weights))


def rectify(
    support: Features,
    labels: Tensor,
    query: Features,
    ways: int,
    options: Options,
    prior: Tensor | None = None,
) -> Rectified:
    """Shift the queries, rectify the prototypes, and score the shifted queries by cosine.

    `prior` (tasks, n_query, ways) is what is known of the queries beforehand, in units of cosines:
    it is added to their scores. The largest entry of a query is 0.
    """
    support, query = UnitRows.of(support), UnitRows.of(query)
    prototypes = basic_prototypes(support, labels, ways)
    shift = None
    if options.shift:
        shift = cross_class_shift(support, query)
        query, scores = query.shifted_cosines(shift, prototypes)
    else:
        scores = query.cosines(prototypes)
    scores = scores if prior is None else scores + prior
    if options.z != 0:
        prototypes = rectified_prototypes(support, labels, query, scores, prototypes, options)
        scores = query.cosines(prototypes)
        scores = scores if prior is None else scores + prior
    return Rectified(prototypes, shift, scores)
