"""BD-CSPN-plus: balanced and unbalanced assignment of the queries, weighted by the evidence.

Developed here, from Liu, Song, Qin: "Prototype Rectification for Few-Shot Learning", ECCV 2020.

What rectifies best depends on whether the classes are balanced among the queries, which is unknown
(docs/plus.md has the equations):

* The unbalanced assignment assumes nothing of the class proportions. Queries join the prototypes in
  several rounds, each time only the most confident of every class, weighted by their confidence.
  Errors of pseudo-labels are correlated, so n of them count as much as sqrt(n) labeled samples.

* The balanced assignment gives every class the same number of queries. Where the classes are
  balanced, that removes the cross-class bias better than the paper's shift does.

The weight of the balanced assignment comes from the queries: from how much more likely they are
under class proportions of their own. A ridge regression to the weighted assignment gives the
scores. With few classes it is better than prototypes, with many it depends on the features: where
classes have several labeled samples, cross-validation on two halves of them decides.

Assumes nothing about class proportions and tolerates out-of-distribution queries; it needs several
queries to gain from them.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import Features, confident_queries, membership
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.blocks import class_mean_weights
from protorect.methods._solvers.conjugate_gradient import ridge_cosines
from protorect.methods._solvers.gram import Span, centered_span
from protorect.methods._solvers.sinkhorn import balance, log_likelihood_ratio
from protorect.methods.method import register

# Of the regression. 0.3 to 3 changed accuracy by at most 0.5 points in 10 settings of 150 episodes.
_PENALTY = 1.0
_WAYS_POWER = 0.85  # growth of the expected evidence with the number of free class proportions
_GAIN_FACTOR, _GAIN_OFFSET = 2.0, 1.0  # of the logistic function in `regression_weight`


class PlusOptions(Parameters):
    """Options of BD-CSPN-plus; one set of defaults for all tasks."""

    rounds: int = parameter(3, "Rounds of the unbalanced assignment.", minimum=1)
    joining: int = parameter(12, "Most queries that join a class in a round.", minimum=1)
    scale: float = parameter(10.0, "Factor of the cosines in a query's softmax over the classes.")
    power: float = parameter(
        2.0, "Exponent of that softmax in a query's weight; above 1, uncertain queries count less."
    )
    sharpness: float = parameter(
        20.0, "Factor of the cosines in the balanced assignment.", minimum=0.01, maximum=100
    )
    tolerance: float = parameter(
        0.031,
        "Evidence against balanced classes at which the weight of the balanced assignment has "
        "fallen to 1/e, in units of the square root of the number of queries times a power of the "
        "number of classes; a tiny value turns the balanced assignment off, a huge one the "
        "unbalanced.",
        minimum=1e-6,
    )
    steps: int = parameter(5, "Iterations of the regression; 1: weighted prototypes.", minimum=1)
    held_out: bool = parameter(
        True,
        "Whether cross-validation on the support decides between regression and prototypes; if "
        "not, the regression is used.",
    )


@register(
    "bd-cspn-plus",
    PlusOptions(),
    "transductive",
    "balanced and unbalanced assignment weighted by evidence, then a regression",
)
def bd_cspn_plus(
    support: Features, labels: Tensor, query: Features, ways: int, options: PlusOptions
) -> Tensor:
    """Scores (tasks, n_query, ways): cosines, plus the potentials of the balanced assignment."""
    support, query = power_transform(support, query)
    n_support = support.scale.shape[-1]
    members = membership(labels, ways).mT.to(support.scale.dtype)
    members = members.expand(len(support.rows), ways, n_support)
    center_weights = class_mean_weights(members).mean(dim=-2, keepdim=True)
    span = centered_span(support, query, center_weights)
    targets, weights, balanced_weight = soft_labels(span, members, options)
    sums, solution = ridge_cosines(span, targets, weights, _PENALTY, options.steps)
    weight = regression_weight(span.first(n_support), members, options)
    scores = torch.lerp(sums, solution, weight)[..., n_support:]
    _, potentials = balance(options.sharpness * scores)
    return (scores + balanced_weight * potentials / options.sharpness).mT


def soft_labels(span: Span, members: Tensor, options: PlusOptions) -> tuple[Tensor, Tensor, Tensor]:
    """Targets and sample weights of the regression, and the weight of the balanced assignment.

    `members` (tasks, ways, n_support) is 1 where a sample belongs to a class. Returns targets
    (tasks, ways, n) that sum to zero over the classes, weights (tasks, 1, n), and (tasks, 1, 1).
    """
    n_support, ways = members.shape[-1], members.shape[-2]
    class_sums = span.combine(span.pad_queries(members))
    scores = span.cosines(class_sums)[..., n_support:]
    p, query_weights = unbalanced_assignment(span, class_sums, scores, options)
    balanced_p, balanced_weight = balanced_assignment(span, class_sums, scores, options)
    # Under the balanced assumption all queries count, again n of a class as sqrt(n).
    balanced_weights = torch.full_like(query_weights, (ways / query_weights.shape[-1]) ** 0.5)
    targets = torch.cat([members, p.lerp_(balanced_p, balanced_weight)], dim=-1).sub_(1 / ways)
    query_weights = query_weights.lerp_(balanced_weights, balanced_weight)
    # The support samples of every class have the same total weight.
    mean_shots = members.sum(dim=-1, keepdim=True).mean(dim=-2, keepdim=True)
    support_weights = class_mean_weights(members).sum(dim=-2, keepdim=True) * mean_shots
    return targets, torch.cat([support_weights, query_weights], dim=-1), balanced_weight


def power_transform(support: Features, query: Features) -> tuple[UnitRows, UnitRows]:
    """Unit rows of the features; of their square roots in tasks without a negative feature.

    Features after a ReLU are skewed, their square roots less so (Hu, Gripon, Pateux: "Leveraging
    the Feature Distribution in Transfer-based Few-Shot Learning", ICANN 2021).
    """
    parts = [UnitRows.raw(part).rows for part in (support, query)]
    non_negative = torch.stack([part.amin(dim=(-2, -1)) >= 0 for part in parts]).all(dim=0)
    if not non_negative.any():
        return UnitRows.of(support), UnitRows.of(query)
    # The square root of exactly 0 takes many times as long as that of any other number.
    roots = [part.clamp_min(torch.finfo(part.dtype).tiny).sqrt_() for part in parts]
    if not non_negative.all():
        chosen = non_negative[:, None, None]
        roots = [torch.where(chosen, *pair) for pair in zip(roots, parts, strict=True)]
    return UnitRows.of(roots[0]), UnitRows.of(roots[1])


def unbalanced_assignment(
    span: Span, class_sums: Tensor, scores: Tensor, options: PlusOptions
) -> tuple[Tensor, Tensor]:
    """Probabilities (tasks, ways, n_query), and weights (tasks, 1, n_query) of the queries.

    `class_sums` are the sums of the support samples, `scores` (tasks, ways, n_query) the queries'
    cosines with them. The weight is that of the last round, 0 for queries that did not join in it.
    """
    for _ in range(options.rounds):
        weights = confident_weights(scores, options)
        scores = rectified_cosines(span, class_sums, weights)
    return torch.softmax(options.scale * scores, dim=-2), weights.sum(dim=-2, keepdim=True)


def confident_weights(scores: Tensor, options: PlusOptions) -> Tensor:
    """Weight of each query in each class, (tasks, ways, n_query), 0 where it does not join.

    The probability to the `power`, relative to the most confident query of the class, scaled such
    that n queries count as sqrt(n).
    """
    places, taken = (table.mT for table in confident_queries(scores.mT, options.joining))
    log_p = torch.log_softmax(options.scale * scores, dim=-2).gather(-1, places)
    log_p = torch.where(taken, log_p, -torch.inf)
    largest = log_p.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(log_p.dtype).min)
    weights = (options.power * (log_p - largest)).exp()
    weights = torch.where(taken, weights, 0.0)  # needed where power is 0
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1).sqrt()
    return torch.zeros_like(scores).scatter_add_(-1, places, weights)


def balanced_assignment(
    span: Span, class_sums: Tensor, scores: Tensor, options: PlusOptions
) -> tuple[Tensor, Tensor]:
    """Probabilities (tasks, ways, n_query) of balanced classes, and their weight (tasks, 1, 1).

    The weight, in 0 .. 1, falls with the evidence against balanced classes. That is computed after
    the first of two rounds: more rounds adapt the prototypes until balanced classes look likely.
    """
    ways, n_query = scores.shape[-2:]
    if n_query < ways:  # some class has no query
        return torch.zeros_like(scores), torch.zeros_like(scores[:, :1, :1])
    p, _ = balance(options.sharpness * scores)
    logits = options.sharpness * rectified_cosines(span, class_sums, p)
    evidence = log_likelihood_ratio(logits)
    # Evidence grows with the queries if classes are unbalanced, not if they are balanced; and less
    # than linearly with the number of free proportions.
    expected = options.tolerance * max(ways - 1, 1) ** _WAYS_POWER * n_query**0.5
    p, _ = balance(logits)
    p, _ = balance(options.sharpness * rectified_cosines(span, class_sums, p))
    return p, torch.exp(-evidence / expected)


def rectified_cosines(span: Span, class_sums: Tensor, weights: Tensor) -> Tensor:
    """Cosines of the queries with the rectified prototypes, (tasks, ways, n_query).

    Those are the sums of the support samples plus those of the queries, weights (tasks, ways,
    n_query).
    """
    n_support = span.n - weights.shape[-1]
    prototypes = span.combine(pad(weights, (n_support, 0))) + class_sums
    return span.cosines(prototypes)[..., n_support:]


def regression_weight(support: Span, members: Tensor, options: PlusOptions) -> Tensor:
    """Weight of the regression against the prototypes, (tasks, 1, 1) in 0 .. 1.

    Two-fold cross-validation on the support: the number of samples that the regression classifies
    correctly minus that of the prototypes, in units of its standard deviation by chance, is the
    argument of a logistic function that favors the regression.
    """
    place = (members.cumsum(dim=-1) * members).sum(dim=-2, keepdim=True)  # within its class, from 1
    if not options.held_out or place.max() < 2:
        return torch.ones_like(place[..., :1])
    folds = torch.stack([place % 2 == 0, place % 2 == 1], dim=1).to(members.dtype)
    weights = folds.expand(-1, -1, members.shape[-2], -1)  # (tasks, 2, ways, n)
    targets = (members - 1 / members.shape[-2]).unsqueeze(1).expand_as(weights)
    # Both folds are fitted at once, as if they were more classes.
    flat = targets.flatten(1, 2), weights.flatten(1, 2)
    fit = ridge_cosines(support, *flat, _PENALTY, options.steps)
    by_sums, by_regression = (_correct(cosines.view_as(weights), members) for cosines in fit)
    gain = ((by_regression - by_sums) * (1 - folds)).flatten(1)
    deviation = gain.abs().sum(dim=-1).clamp_min(1).sqrt()
    return torch.sigmoid(_GAIN_FACTOR * gain.sum(dim=-1) / deviation + _GAIN_OFFSET).view(-1, 1, 1)


def _correct(cosines: Tensor, members: Tensor) -> Tensor:
    """1 where a sample's own class scores highest, else 0: (tasks, 2, 1, n)."""
    highest = cosines == cosines.amax(dim=-2, keepdim=True)
    return (highest * members.unsqueeze(1)).sum(dim=-2, keepdim=True)
