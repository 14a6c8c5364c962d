"""BD-CSPN-plus: pseudo-labels from prototypes or a regression, for any class proportions.

Developed here, from Liu, Song, Qin: "Prototype Rectification for Few-Shot Learning", ECCV 2020.

One set of defaults for one to hundreds of labeled samples per class (docs/plus.md has the
equations):

* Prototypes and a ridge regression are weighted by cross-validation on the labeled samples.

* Queries join the classes in several rounds, only the most confident of every class, weighted by
  their confidence. Errors of pseudo-labels are correlated, so n of them count as much as sqrt(n)
  labeled samples.

* Under the balanced assumption every class gets the same number of queries. The weight of the
  balanced assumption falls with the gain in log-likelihood of estimated class proportions over
  equal ones. If that gain is large, the estimated proportions are a prior of the classes.

Of a large number of queries, the method learns from some, evenly spaced, and then classifies all.

Assumes nothing about class proportions and tolerates out-of-distribution queries; it needs several
queries to gain from them.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import Features, confident_queries
from protorect.core.power_transform import has_no_negatives, square_roots
from protorect.core.unit_rows import RawRows, UnitRows, evenly_spaced
from protorect.methods._solvers.blocks import class_mean_weights
from protorect.methods._solvers.gram import centered_span
from protorect.methods._solvers.head import Head
from protorect.methods._solvers.sinkhorn import balance, class_proportions
from protorect.methods.interface import Solution, Task, with_prior
from protorect.methods.method import register
from protorect.methods.rules import Rule, in_blocks

_WAYS_POWER = 0.85  # growth of the expected evidence with the number of free class proportions
_SHOTS_POWER = 0.6  # fall of the evidence needed for class proportions with the shots
_MAX_SHOTS = 10  # more shots do not lower the needed evidence
_GATE_POWER = 4  # steepness of the weight of the class proportions at the needed evidence
_PSEUDO_COUNT = 0.1  # queries added to every class, relative to their mean: none is excluded
_SCALE_WAYS = 5  # number of classes above which the scale of the softmax grows
_QUERIES_PER_CLASS = 20  # maximum of the queries learned from, per class, if `max_queries` is less


class PlusOptions(Parameters):
    """Options of BD-CSPN-plus; one set of defaults for all tasks."""

    iterations: int = parameter(3, "Rounds in which queries join.", minimum=1, aliases=("rounds",))
    joining: int = parameter(12, "Most queries that join a class in a round.", minimum=1)
    scale: float = parameter(
        10.0,
        "Factor of the cosines in a query's softmax over the classes; with more than 5 of them it "
        "grows with the logarithm of their number.",
    )
    sharpness: float = parameter(
        20.0,
        "Factor of the cosines in the balanced assignment and in the class proportions.",
        minimum=0.01,
        maximum=100,
    )
    tolerance: float = parameter(
        0.031,
        "Evidence against balanced classes at which the weight of the balanced assignment has "
        "fallen to 1/e, in units of the square root of the number of queries times a power of the "
        "number of classes; a tiny value turns the balanced assignment off, a huge one the "
        "unbalanced.",
        minimum=1e-6,
    )
    imbalance: float = parameter(
        0.4,
        "Evidence for class proportions, per query, from which they are used; a huge value turns "
        "them off.",
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
    max_queries: int = parameter(
        600,
        "Maximum number of queries that are learned from, evenly spaced; "
        f"{_QUERIES_PER_CLASS} per class if that is more.",
        minimum=1,
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


class Labels(NamedTuple):
    """Soft labels of the queries."""

    p: Tensor  # (tasks, ways, n_query)
    weights: Tensor  # (tasks, 1, n_query)
    balanced: Tensor  # (tasks, 1, 1), weight of the balanced assumption
    proportions: Tensor  # (tasks, 1, 1), weight of the class proportions


@register(
    "bd-cspn-plus",
    PlusOptions(),
    "transductive",
    "prototypes or a regression with pseudo-labels, for any class proportions",
    uses_prior=True,
    tuned_on="validation classes of Omniglot, cropped CUB and miniImageNet, and other pictures of "
    "flowers, traffic signs and groceries",
)
def bd_cspn_plus(task: Task, options: PlusOptions) -> Solution:
    """Cosines, plus potentials of the balanced assignment or of the class proportions."""
    whole, task = task, subsampled(task, options)
    square_root, support, query = power_transform(task)
    members = task.members_by_class()
    center_weights = class_mean_weights(members).mean(dim=-2, keepdim=True)
    span = centered_span(support, query, center_weights)
    head = Head.of(span, members, options.regression_iterations, options.held_out)
    labels = soft_labels(head, task, options)
    prototypes, regression = head.solve(labels.p, labels.weights)
    scores = torch.lerp(prototypes.cosines, regression.cosines, head.regression_weight)
    scores = scores[..., support.n :]
    scores = with_prior(scores, task.prior_by_class(options.sharpness))
    bias = _potentials(scores, labels, options)

    def rule() -> PlusRule:
        parts = prototypes.normalized(), regression.normalized()
        directions = torch.lerp(*parts, head.regression_weight)
        center = support.weighted_sum_by_class(center_weights).squeeze(-2)
        return PlusRule(span.vectors(directions), bias.squeeze(-1), center, square_root)

    if task is whole:
        return Solution.by_class(scores + bias, rule)
    made = rule()
    all_scores = made.scores(whole.unlabeled)
    return Solution(with_prior(all_scores, whole.prior_scores(options.sharpness)), lambda: made)


def soft_labels(head: Head, task: Task, options: PlusOptions) -> Labels:
    """Labels of the queries under both assumptions, weighted by the evidence."""
    ways, n_query = task.ways, task.n_unlabeled
    none = head.members.new_zeros(len(head.members), ways, n_query)
    if not n_query:
        zero = torch.zeros_like(head.regression_weight)
        return Labels(none, none[:, :1], zero, zero)
    prior = task.prior_by_class(options.sharpness)
    scores = with_prior(head.cosines(none, none), prior)
    shots = head.members.shape[-1] / ways
    weight = proportions_weight(scores, shots, options)
    for _ in range(options.iterations):
        scores = scores + weight * log_proportions(scores, options)
        p, joined = join(scores, options)
        scores = with_prior(head.cosines(p, joined), prior)
    p = probabilities(scores + weight * log_proportions(scores, options), options)
    weights = joined.sum(dim=-2, keepdim=True)
    balanced_p, balanced = balanced_assignment(head, scores, options, prior)
    # Under the balanced assumption all queries count, again n of a class as sqrt(n).
    equal_weights = torch.full_like(weights, (ways / n_query) ** 0.5)
    return Labels(
        torch.lerp(p, balanced_p, balanced),
        torch.lerp(weights, equal_weights, balanced),
        balanced,
        weight,
    )


def probabilities(scores: Tensor, options: PlusOptions) -> Tensor:
    """Softmax over the classes of scores (tasks, ways, n_query).

    Of more classes, the highest has a smaller share at the same scale, so the scale grows.
    """
    growth = max(1.0, math.log(scores.shape[-2]) / math.log(_SCALE_WAYS))
    return torch.softmax(options.scale * growth * scores, dim=-2)


def join(scores: Tensor, options: PlusOptions) -> tuple[Tensor, Tensor]:
    """Probabilities of the queries, and their weight in each class, 0 where they do not join.

    Both are (tasks, ways, n_query). The weight is the probability, from 0 at chance to 1, scaled
    such that n queries of a class count as sqrt(n).
    """
    p = probabilities(scores, options)
    # `core` has the samples before the classes.
    positions, taken = (table.mT for table in confident_queries(scores.mT, options.joining))
    chance = 1 / scores.shape[-2]
    weights = (p.gather(-1, positions) - chance).clamp_min_(0) / (1 - chance) * taken
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1).sqrt()
    return p, torch.zeros_like(scores).scatter_add_(-1, positions, weights)


def proportions_weight(scores: Tensor, shots: float, options: PlusOptions) -> Tensor:
    """Weight of the class proportions, (tasks, 1, 1) in 0 .. 1.

    It grows with the evidence of the queries that classes are unbalanced. With few labeled samples
    the scores are biased towards some classes, so more evidence is needed.
    """
    ways, n_query = scores.shape[-2:]
    _, evidence = class_proportions(options.sharpness * scores, _PSEUDO_COUNT)
    needed = options.imbalance * (ways - 1) ** 0.5 * min(shots, _MAX_SHOTS) ** -_SHOTS_POWER
    return -torch.expm1(-((evidence / n_query / max(needed, 1e-6)) ** _GATE_POWER))


def log_proportions(scores: Tensor, options: PlusOptions) -> Tensor:
    """Logarithms of the class proportions relative to equal ones, as scores (tasks, ways, 1)."""
    proportions, _ = class_proportions(options.sharpness * scores, _PSEUDO_COUNT)
    return (scores.shape[-2] * proportions).log_().div_(options.sharpness)


def balanced_assignment(
    head: Head, scores: Tensor, options: PlusOptions, prior: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Probabilities (tasks, ways, n_query) of balanced classes, and their weight (tasks, 1, 1).

    The weight, in 0 .. 1, falls with the evidence against balanced classes. That is computed after
    the first of two iterations: more adapt the prototypes until balanced classes look likely.
    """
    ways, n_query = scores.shape[-2:]
    if n_query < ways:  # some class has no query
        return torch.zeros_like(scores), torch.zeros_like(scores[:, :1, :1])
    p, _ = balance(options.sharpness * scores)
    logits = options.sharpness * with_prior(head.prototype_cosines(p), prior)
    _, evidence = class_proportions(logits)
    # Evidence grows with the queries if classes are unbalanced, not if they are balanced; and less
    # than linearly with the number of free proportions.
    expected = options.tolerance * max(ways - 1, 1) ** _WAYS_POWER * n_query**0.5
    p, _ = balance(logits)
    p, _ = balance(options.sharpness * with_prior(head.prototype_cosines(p), prior))
    return p, torch.exp(-evidence / expected)


def _potentials(scores: Tensor, labels: Labels, options: PlusOptions) -> Tensor:
    """What is added to the scores of the classes, (tasks, ways, 1)."""
    if not scores.shape[-1]:
        return scores.new_zeros(*scores.shape[:-1], 1)
    _, potentials = balance(options.sharpness * scores)
    proportions = labels.proportions * log_proportions(scores, options)
    return torch.lerp(proportions, potentials / options.sharpness, labels.balanced)


def subsampled(task: Task, options: PlusOptions) -> Task:
    """The same task with no more queries than are learned from, evenly spaced."""
    maximum = max(options.max_queries, _QUERIES_PER_CLASS * task.ways)
    if task.n_unlabeled <= maximum:
        return task
    some, unlabeled = evenly_spaced(task.n_unlabeled, maximum), task.unlabeled
    return replace(
        task,
        unlabeled=unlabeled.subsample(some)
        if isinstance(unlabeled, UnitRows)
        else unlabeled[:, some].contiguous(),
        prior=None if task.prior is None else task.prior[:, some],
    )


def power_transform(task: Task) -> tuple[Tensor, UnitRows, UnitRows]:
    """Whether a task has square roots, (tasks,), and unit rows of support and queries.

    A task without a negative feature has square roots.
    """
    parts = [part.rows for part in task.raw_rows()]
    square_root = has_no_negatives(*parts)
    if not square_root.any():
        return square_root, *task.unit_rows()
    support, query = (UnitRows.of(square_roots(part, square_root)) for part in parts)
    return square_root, support, query
