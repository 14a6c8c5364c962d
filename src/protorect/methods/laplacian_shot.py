"""LaplacianShot: near a prototype, and of one mind with the neighbours.

Imtiaz Masud Ziko, Jose Dolz, Eric Granger, Ismail Ben Ayed: "Laplacian Regularized Few-Shot
Learning", ICML 2020. Each query is drawn to near prototypes and to the classes of its nearest
queries; the bound updates of algorithm 1 find the assignment, all queries at a time. The prototypes
are first rectified as there: queries shifted to the support, then for each class the mean of
the support and of the queries nearest to it, each weighted by its softmax over the classes.

The paper takes k = 3; the authors' program counts a query among its own nearest, which leaves the 2
others that are the default here. They choose lambda in 0.1 .. 1.5 on validation classes, 1 for
iNat, which is the default here; and they take off the mean of the base classes first, which is not
done here.

Assumes that neighbours share their class, and with the rectification that the queries hold the
classes in the proportions of the support.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect._utils.parameters import check_flag, check_number, check_whole
from protorect.core.functional import Features, membership, predictions
from protorect.core.unit_rows import UnitRows, inverse
from protorect.methods._solvers.blocks import member_shares
from protorect.methods._solvers.gram import FewSamples, ManySamples, Span
from protorect.methods._solvers.nearness import joint_cosines, nearest_others

_SHARPNESS = 10.0  # of the softmax in the rectification, as in the authors' program


@dataclass(frozen=True)
class LaplacianShotOptions:
    """The choices of the energy and of its minimisation.

    Parameters
    ----------
    weight
        What the agreement with the neighbours weighs against the distance, lambda.
    neighbours
        How many nearest other queries each query listens to, k - 1.
    rectify
        Whether the prototypes are rectified first.
    rounds
        How many bound updates; the authors' program makes 20 at most.
    """

    weight: float = 1.0
    neighbours: int = 2
    rectify: bool = True
    rounds: int = 20

    def __post_init__(self) -> None:
        check_number("weight", self.weight, 0, 1e6)
        check_whole("neighbours", self.neighbours, 0)
        check_flag("rectify", self.rectify)
        check_whole("rounds", self.rounds, 0)


def laplacian_shot(
    support: Features, labels: Tensor, query: Features, ways: int, options: LaplacianShotOptions
) -> Tensor:
    """Logarithm of the assignment of each query to each class, but for a constant of the query."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    n_support, n_query = support.scale.shape[1], query.scale.shape[1]
    span, neighbours = _span(support, query, options.neighbours)
    labelled = membership(labels, ways).to(query.scale.dtype).mT
    labelled = labelled.expand(len(query.scale), ways, n_support)
    prototypes = span.padded(member_shares(labelled))
    shift = labelled.new_zeros(1, 1, span.n)
    if options.rectify:
        shift[..., :n_support], shift[..., n_support:] = 1 / n_support, -1 / n_query
        squares = (torch.cat([support.scale, query.scale], dim=1) > 0).unsqueeze(-2)
        prototypes = _rectified(span, squares, labelled, prototypes, shift)
    near = _nearness(span, prototypes, shift)[..., n_support:]
    return _agreement(near, neighbours, options)


# All vectors that the energy needs are sums of samples: a prototype, the shift, a shifted query.
# Below, such a vector is its shares (n) in the samples, the support first.


def _products(span: Span, shares: Tensor) -> Tensor:
    """Of vectors with every sample, (tasks, ways, n), from their shares of that shape."""
    return span.products(span.combined(shares))


def _span(support: UnitRows, query: UnitRows, neighbours: int) -> tuple[Span, Tensor]:
    """The samples' span, and the places (tasks, n_query, k) of the queries nearest to each query.

    A shift of all queries changes no distance between them.
    """
    n_support, n_query = support.scale.shape[1], query.scale.shape[1]
    if n_support + n_query > query.rows.shape[-1]:
        _, places = nearest_others(query.cosines_with(query), neighbours)
        return ManySamples([support, query]), places
    cosines = joint_cosines(support, query)
    diagonal = cosines.diagonal(dim1=-2, dim2=-1)
    lengths = diagonal.clone()
    _, places = nearest_others(cosines[:, n_support:, n_support:], neighbours)
    diagonal.copy_(lengths)
    return FewSamples(cosines), places


def _nearness(span: Span, prototypes: Tensor, shift: Tensor) -> Tensor:
    """Minus squared distances of shifted samples to prototypes but for a constant of the sample.

    2 (x + shift).p - |p|^2, as (tasks, ways, n).
    """
    products = _products(span, prototypes)
    offsets = ((2 * shift - prototypes) * products).sum(dim=-1, keepdim=True)
    return products.mul_(2).add_(offsets)


def _rectified(
    span: Span, squares: Tensor, labelled: Tensor, prototypes: Tensor, shift: Tensor
) -> Tensor:
    """Prototypes as means of the support and of the shifted queries nearest to each, weighted.

    `squares` (tasks, 1, n) of the samples' lengths: 1, or 0 for a zero feature. `labelled` (tasks,
    ways, n_support) is 1 where a sample belongs to a class.
    """
    ways, n_support = labelled.shape[-2:]
    shifted = (shift < 0).to(shift.dtype)  # 1 for a query, which is shifted
    vectors = torch.cat([prototypes, shift.expand(len(labelled), 1, -1)], dim=-2)
    products = _products(span, vectors)
    along, to_shift = products[:, :ways], products[:, ways:]
    squares = squares + shifted * (2 * to_shift + (shift * to_shift).sum(dim=-1, keepdim=True))
    prototype_squares = (prototypes * along).sum(dim=-1, keepdim=True)
    along = along + shifted * (shift * along).sum(dim=-1, keepdim=True)
    scores = along * _inverse_root(squares) * _inverse_root(prototype_squares)  # cosines

    joining = membership(predictions(scores[..., n_support:].mT), ways).mT
    members = torch.cat([labelled, joining.to(labelled.dtype)], dim=-1)
    weights = torch.softmax(_SHARPNESS * scores, dim=-2) * member_shares(members)
    return weights + (weights * shifted).sum(dim=-1, keepdim=True) * shift


def _agreement(near: Tensor, neighbours: Tensor, options: LaplacianShotOptions) -> Tensor:
    """The bound updates, all queries at a time, (tasks, n_query, ways).

    Parameters
    ----------
    near
        (tasks, ways, n_query)
    neighbours
        (tasks, n_query, k), places of queries.
    """
    tasks, ways, n_query = near.shape
    # All queries of a class side by side, whatever their task: the rounds take half the time.
    near = near.transpose(0, 1).flatten(1)  # (ways, tasks x n_query)
    first_of_task = n_query * torch.arange(tasks, device=near.device).view(-1, 1, 1)
    places = (neighbours + first_of_task).flatten(0, 1).unbind(-1)
    scores = near
    for _ in range(options.rounds):
        shares = torch.softmax(scores, dim=0)
        scores = near.clone()
        for place in places:  # the update of algorithm 1
            scores.add_(shares.index_select(1, place), alpha=options.weight)
    return scores.view(ways, tasks, n_query).permute(1, 2, 0)


def _inverse_root(squares: Tensor) -> Tensor:
    return inverse(squares.clamp_min(0).sqrt())
