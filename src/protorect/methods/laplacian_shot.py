"""LaplacianShot: nearest prototypes, regularized to agree among neighboring queries.

Imtiaz Masud Ziko, Jose Dolz, Eric Granger, Ismail Ben Ayed: "Laplacian Regularized Few-Shot
Learning", ICML 2020. An energy adds the distance of each query to its prototype and the
disagreement with its nearest queries; the bound updates of algorithm 1 minimize it for all queries
at once. The prototypes are first rectified as there: queries are shifted to the support, then each
prototype becomes the mean of the support and of the queries nearest to it, each weighted by its
softmax over the classes.

As in the authors' code, all features are first centered and then normalized. They subtract the mean
feature of the base classes: give it as `base_mean` in Python, or on the command line a feature file
of the base classes as `--base`. Without it, the mean of the task is subtracted, halfway between the
mean of its support, which has every class, and that of its queries, which are many. With
`center=none` nothing is, which is much worse on features that cannot be negative.

In the rectification, the support joins by prediction like the queries, as in the authors' code: a
support sample that is nearest to the prototype of another class counts for that one. A class that
no sample is predicted as keeps its prototype.

The paper takes k = 3; the authors' code counts a query among its own nearest, which leaves the 2
others that are the default here. They choose lambda in 0.1 .. 1.5 on validation classes, 1 for
iNat, which is the default here.

Assumes that neighbors share their class, and with the rectification the same class proportions in
queries and support.
"""

from typing import Literal

import torch
from torch import Tensor

from protorect._utils.parameters import parameter
from protorect.core.unit_rows import UnitRows, inverse
from protorect.methods._solvers.blocks import class_mean_weights
from protorect.methods._solvers.gram import (
    FeatureSpan,
    GramSpan,
    Span,
    joint_cosines,
    nearest_neighbors,
    nearest_rows,
)
from protorect.methods.centering import CenteringOptions
from protorect.methods.interface import Solution, Task
from protorect.methods.method import register
from protorect.methods.rules import DistanceRule, assigned_means

_SCALE = 10.0  # of the cosines in the softmax of the rectification, as in the authors' code


class LaplacianShotOptions(CenteringOptions):
    """Options of the energy and of its minimization."""

    center: Literal["task", "none"] = parameter(
        "task",
        'What is subtracted where no base mean is given: the mean of the "task", or "none".',
        aliases=("centre",),
    )
    weight: float = parameter(1.0, "lambda, the weight of the agreement with neighbors.")
    neighbors: int = parameter(
        2,
        "k - 1, the number of nearest other queries of each query.",
        aliases=("neighbours",),
    )
    rectify: bool = parameter(True, "Whether the prototypes are rectified first.")
    iterations: int = parameter(
        20, "Number of bound updates; at most 20 in the authors' code.", aliases=("rounds",)
    )


@register(
    "laplacian-shot",
    LaplacianShotOptions(),
    "transductive",
    "nearest prototype, in agreement with the nearest queries",
    has_rule=False,
    tuned_on="values of its authors; the center of a task on validation classes of Omniglot, "
    "cropped CUB and miniImageNet",
)
def laplacian_shot(task: Task, options: LaplacianShotOptions) -> Solution | DistanceRule:
    """Logarithm of each query's assignment up to a constant per query."""
    support, query, center = _centered(task, options)
    members = task.members_by_class()
    if not query.n:
        return DistanceRule(support.weighted_sum_by_class(class_mean_weights(members)), center)
    span, neighbors = _span(support, query, options.neighbors)
    prototypes = span.pad_queries(class_mean_weights(members))
    shift = members.new_zeros(1, 1, span.n)
    if options.rectify:
        shift[..., : support.n], shift[..., support.n :] = 1 / support.n, -1 / query.n
        squares = (torch.cat([support.scale, query.scale], dim=1) > 0).unsqueeze(-2)
        prototypes = _rectify(span, squares, prototypes, shift)
    distances = _distance_scores(span, prototypes, shift)[..., support.n :]
    scores = _bound_updates(distances, neighbors, options)

    def rule() -> DistanceRule:
        # x + shift is as far from a mean of shifted queries as x is from that mean minus the shift.
        shift_vector = support.mean() - query.mean() if options.rectify else support.mean() * 0
        p = torch.softmax(scores, dim=-2)
        share = p.sum(dim=-1, keepdim=True)
        weight = share / (share + members.sum(dim=-1, keepdim=True)) - 1
        means = assigned_means(support, members, query, p)
        return DistanceRule(means.addcmul(weight, shift_vector.unsqueeze(-2)), center)

    return Solution.by_class(scores, rule)


def _centered(
    task: Task, options: LaplacianShotOptions
) -> tuple[UnitRows, UnitRows, Tensor | None]:
    """Normalized support and queries minus the center, and the center (tasks, dim), if any."""
    support, query = task.raw_rows()
    center = options.base_center(support)
    if center is None and options.center == "none":
        return *task.unit_rows(), None
    if center is None:
        center = (support.mean() + query.mean()) / 2 if query.n else support.mean()
    centered = [UnitRows.of(rows.rows - center.unsqueeze(-2)) for rows in (support, query)]
    return centered[0], centered[1], center


# Prototypes, the shift and shifted queries are linear combinations of the samples. Below, such a
# vector is given by its coefficients (n) in the samples, support first.


def _span(support: UnitRows, query: UnitRows, neighbors: int) -> tuple[Span, Tensor]:
    """The samples' span, and the positions (tasks, n_query, k) of each query's nearest queries.

    A shift of all queries does not change the distances between them.
    """
    n_support = support.n
    if n_support + query.n > query.rows.shape[-1]:
        return FeatureSpan([support, query]), nearest_rows(query, neighbors)
    cosines = joint_cosines(support, query)
    _, positions = nearest_neighbors(cosines[:, n_support:, n_support:], neighbors)
    return GramSpan(cosines, lambda: [support, query]), positions


def _distance_scores(span: Span, prototypes: Tensor, shift: Tensor) -> Tensor:
    """2 (x + shift).p - |p|^2, minus the squared distance up to a constant, (tasks, ways, n)."""
    products = span.products_by_class(span.combine(prototypes))
    offsets = ((2 * shift - prototypes) * products).sum(dim=-1, keepdim=True)
    return products.mul_(2).add_(offsets)


def _rectify(span: Span, squares: Tensor, prototypes: Tensor, shift: Tensor) -> Tensor:
    """Prototypes as weighted means of the support and the shifted queries predicted as each class.

    `squares` (tasks, 1, n) are the samples' squared norms: 1, or 0 for a zero feature.
    """
    ways = prototypes.shape[-2]
    # The shift is mean(support) - mean(queries): its coefficients are negative at queries.
    is_query = (shift < 0).to(shift.dtype)
    vectors = torch.cat([prototypes, shift.expand(len(prototypes), 1, -1)], dim=-2)
    products = span.products_by_class(span.combine(vectors))
    products, with_shift = products[:, :ways], products[:, ways:]
    squares = squares + is_query * (2 * with_shift + (shift * with_shift).sum(dim=-1, keepdim=True))
    prototype_squares = (prototypes * products).sum(dim=-1, keepdim=True)
    products = products + is_query * (shift * products).sum(dim=-1, keepdim=True)
    norms = [square.clamp_min(0).sqrt() for square in (squares, prototype_squares)]
    cosines = products * inverse(norms[0]) * inverse(norms[1])

    predicted = cosines.max(dim=-2, keepdim=True).indices
    classes = torch.arange(ways, device=predicted.device).unsqueeze(-1)
    members = (predicted == classes).to(cosines.dtype)
    counts = members.sum(dim=-1, keepdim=True)
    weights = torch.softmax(_SCALE * cosines, dim=-2) * members / counts.clamp_min(1)
    rectified = weights + (weights * is_query).sum(dim=-1, keepdim=True) * shift
    return torch.where(counts > 0, rectified, prototypes)


def _bound_updates(
    distance_scores: Tensor, neighbors: Tensor, options: LaplacianShotOptions
) -> Tensor:
    """The updates of algorithm 1 from scores (tasks, ways, n_query), of that shape.

    `neighbors` (tasks, n_query, k) are positions of queries.
    """
    tasks, ways, n_query = distance_scores.shape
    # One row per class with the queries of all tasks: half the time of a batch of tasks.
    start = distance_scores.transpose(0, 1).flatten(1)  # (ways, tasks x n_query)
    first_of_task = n_query * torch.arange(tasks, device=start.device).view(-1, 1, 1)
    positions = (neighbors + first_of_task).flatten(0, 1).unbind(-1)
    scores = start
    for _ in range(options.iterations):
        p = torch.softmax(scores, dim=0)
        scores = start.clone()
        for position in positions:
            scores.add_(p.index_select(1, position), alpha=options.weight)
    return scores.view(ways, tasks, n_query).transpose(0, 1)
