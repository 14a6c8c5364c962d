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

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import pad

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import Features, confident_queries
from protorect.core.unit_rows import RawRows, UnitRows
from protorect.methods._solvers.blocks import class_mean_weights
from protorect.methods._solvers.conjugate_gradient import ridge
from protorect.methods._solvers.gram import Span, centered_span
from protorect.methods._solvers.sinkhorn import balance, log_likelihood_ratio
from protorect.methods.interface import Solution, Task, with_prior
from protorect.methods.method import register
from protorect.methods.rules import Rule, in_blocks

# Of the regression. 0.3 to 3 changed accuracy by at most 0.5 points in 10 settings of 150 episodes.
_PENALTY = 1.0
_WAYS_POWER = 0.85  # growth of the expected evidence with the number of free class proportions
_GAIN_FACTOR, _GAIN_OFFSET = 2.0, 1.0  # of the logistic function in `regression_weight`


class PlusOptions(Parameters):
    """Options of BD-CSPN-plus; one set of defaults for all tasks."""

    iterations: int = parameter(
        3, "Iterations of the unbalanced assignment.", minimum=1, aliases=("rounds",)
    )
    joining: int = parameter(12, "Most queries that join a class in an iteration.", minimum=1)
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
    regression_iterations: int = parameter(
        5, "Iterations of the regression; 1: weighted prototypes.", minimum=1, aliases=("steps",)
    )
    held_out: bool = parameter(
        True,
        "Whether cross-validation on the support decides between regression and prototypes; if "
        "not, the regression is used.",
    )


@dataclass(frozen=True, eq=False)
class PlusRule(Rule):
    """Products of the centered samples with one direction per class, plus a bias."""

    directions: Annotated[Tensor, "tasks ways dim"]
    bias: Annotated[Tensor, "tasks ways"]
    center: Annotated[Tensor, "tasks dim"]
    square_root: Annotated[Tensor, "tasks"]  # whether the task has square roots of features

    def _score(self, samples: Features) -> Tensor:
        if not self.square_root.any():
            return self._score_rows(UnitRows.of(samples))
        return in_blocks(
            lambda block: self._score_rows(UnitRows.of(square_roots(block, self.square_root))),
            RawRows.of(samples).rows,
        )

    def _score_rows(self, rows: UnitRows) -> Tensor:
        scores = rows.shifted(-self.center).products(self.directions)
        return scores.add_(self.bias.unsqueeze(-2))


@register(
    "bd-cspn-plus",
    PlusOptions(),
    "transductive",
    "balanced and unbalanced assignment weighted by evidence, then a regression",
    uses_prior=True,
    tuned_on="validation classes of Omniglot and CUB, and the grocery photographs",
)
def bd_cspn_plus(task: Task, options: PlusOptions) -> Solution:
    """Cosines, plus the potentials of the balanced assignment."""
    square_root, support, query = power_transform(task)
    members, prior = task.members_by_class(), task.prior_by_class(options.sharpness)
    center_weights = class_mean_weights(members).mean(dim=-2, keepdim=True)
    span = centered_span(support, query, center_weights)
    targets, weights, balanced_weight = soft_labels(span, task, options)
    sums, solution = ridge(span, targets, weights, _PENALTY, options.regression_iterations)
    weight = regression_weight(span.first(support.n), members, options)
    scores = torch.lerp(sums.cosines, solution.cosines, weight)[..., support.n :]
    scores = with_prior(scores, prior)
    _, potentials = balance(options.sharpness * scores)
    bias = balanced_weight * potentials / options.sharpness

    def rule() -> PlusRule:
        directions = torch.lerp(sums.normalized(), solution.normalized(), weight)
        center = support.weighted_sum_by_class(center_weights).squeeze(-2)
        return PlusRule(span.vectors(directions), bias.squeeze(-1), center, square_root)

    return Solution.by_class(scores + bias, rule)


def soft_labels(span: Span, task: Task, options: PlusOptions) -> tuple[Tensor, Tensor, Tensor]:
    """Targets and sample weights of the regression, and the weight of the balanced assignment.

    Returns targets (tasks, ways, n) that sum to zero over the classes, weights (tasks, 1, n), and
    (tasks, 1, 1).
    """
    members, ways = task.members_by_class(), task.ways
    n_support, n_query = members.shape[-1], task.n_unlabeled
    # The support samples of every class have the same total weight.
    mean_shots = members.sum(dim=-1, keepdim=True).mean(dim=-2, keepdim=True)
    support_weights = class_mean_weights(members).sum(dim=-2, keepdim=True) * mean_shots
    if not n_query:
        return members - 1 / ways, support_weights, torch.zeros_like(mean_shots)
    class_sums = span.combine(span.pad_queries(members))
    cosines = span.cosines(class_sums)[..., n_support:]
    prior = task.prior_by_class(options.scale)
    p, query_weights = unbalanced_assignment(span, class_sums, cosines, options, prior)
    prior = task.prior_by_class(options.sharpness)
    balanced_p, balanced_weight = balanced_assignment(span, class_sums, cosines, options, prior)
    # Under the balanced assumption all queries count, again n of a class as sqrt(n).
    balanced_weights = torch.full_like(query_weights, (ways / n_query) ** 0.5)
    targets = torch.cat([members, p.lerp_(balanced_p, balanced_weight)], dim=-1).sub_(1 / ways)
    query_weights = query_weights.lerp_(balanced_weights, balanced_weight)
    return targets, torch.cat([support_weights, query_weights], dim=-1), balanced_weight


def power_transform(task: Task) -> tuple[Tensor, UnitRows, UnitRows]:
    """Unit rows of the features; of their square roots in tasks without a negative feature.

    Features after a ReLU are skewed, their square roots less so (Hu, Gripon, Pateux: "Leveraging
    the Feature Distribution in Transfer-based Few-Shot Learning", ICANN 2021). Also returns whether
    a task has square roots, (tasks,).
    """
    parts = [part.rows for part in task.raw_rows()]
    non_negative = [part.amin(dim=(-2, -1)) >= 0 for part in parts if part.shape[1]]
    square_root = torch.stack(non_negative).all(dim=0)
    if not square_root.any():
        return square_root, *task.unit_rows()
    support, query = (UnitRows.of(square_roots(part, square_root)) for part in parts)
    return square_root, support, query


def square_roots(rows: Tensor, square_root: Tensor) -> Tensor:
    """Square roots of the features of some tasks, (tasks,) of True or False; 0 of negative ones."""
    # The square root of exactly 0 takes many times as long as that of any other number.
    roots = rows.clamp_min(torch.finfo(rows.dtype).tiny).sqrt_()
    return roots if square_root.all() else torch.where(square_root[:, None, None], roots, rows)


def unbalanced_assignment(
    span: Span,
    class_sums: Tensor,
    cosines: Tensor,
    options: PlusOptions,
    prior: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Probabilities (tasks, ways, n_query), and weights (tasks, 1, n_query) of the queries.

    `class_sums` are the sums of the support samples, `cosines` (tasks, ways, n_query) those of the
    queries with them; the prior is added to all cosines. The weight is that of the last iteration,
    0 for queries that did not join in it.
    """
    scores = with_prior(cosines, prior)
    for _ in range(options.iterations):
        weights = confident_weights(scores, options)
        scores = with_prior(rectified_cosines(span, class_sums, weights), prior)
    return torch.softmax(options.scale * scores, dim=-2), weights.sum(dim=-2, keepdim=True)


def confident_weights(scores: Tensor, options: PlusOptions) -> Tensor:
    """Weight of each query in each class, (tasks, ways, n_query), 0 where it does not join.

    The probability to the `power`, relative to the most confident query of the class, scaled such
    that n queries count as sqrt(n).
    """
    # `core` has the samples before the classes.
    places, taken = (table.mT for table in confident_queries(scores.mT, options.joining))
    log_p = torch.log_softmax(options.scale * scores, dim=-2).gather(-1, places)
    log_p = torch.where(taken, log_p, -torch.inf)
    largest = log_p.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(log_p.dtype).min)
    weights = (options.power * (log_p - largest)).exp()
    weights = torch.where(taken, weights, 0.0)  # needed where power is 0
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1).sqrt()
    return torch.zeros_like(scores).scatter_add_(-1, places, weights)


def balanced_assignment(
    span: Span,
    class_sums: Tensor,
    cosines: Tensor,
    options: PlusOptions,
    prior: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Probabilities (tasks, ways, n_query) of balanced classes, and their weight (tasks, 1, 1).

    The weight, in 0 .. 1, falls with the evidence against balanced classes. That is computed after
    the first of two iterations: more adapt the prototypes until balanced classes look likely.
    """
    ways, n_query = cosines.shape[-2:]
    if n_query < ways:  # some class has no query
        return torch.zeros_like(cosines), torch.zeros_like(cosines[:, :1, :1])

    def rectified_logits(weights: Tensor) -> Tensor:
        cosines = rectified_cosines(span, class_sums, weights)
        return options.sharpness * with_prior(cosines, prior)

    p, _ = balance(options.sharpness * with_prior(cosines, prior))
    logits = rectified_logits(p)
    evidence = log_likelihood_ratio(logits)
    # Evidence grows with the queries if classes are unbalanced, not if they are balanced; and less
    # than linearly with the number of free proportions.
    expected = options.tolerance * max(ways - 1, 1) ** _WAYS_POWER * n_query**0.5
    p, _ = balance(logits)
    p, _ = balance(rectified_logits(p))
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
    fit = ridge(support, *flat, _PENALTY, options.regression_iterations)
    by_sums, by_regression = (_correct(one.cosines.view_as(weights), members) for one in fit)
    gain = ((by_regression - by_sums) * (1 - folds)).flatten(1)
    deviation = gain.abs().sum(dim=-1).clamp_min(1).sqrt()
    return torch.sigmoid(_GAIN_FACTOR * gain.sum(dim=-1) / deviation + _GAIN_OFFSET).view(-1, 1, 1)


def _correct(cosines: Tensor, members: Tensor) -> Tensor:
    """1 where a sample's own class scores highest, else 0: (tasks, 2, 1, n)."""
    highest = cosines == cosines.amax(dim=-2, keepdim=True)
    return (highest * members.unsqueeze(1)).sum(dim=-2, keepdim=True)
