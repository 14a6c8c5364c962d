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

from protorect.functional import Features, membership, predictions
from protorect.methods.nearness import joint_cosines, nearest_others
from protorect.options import check_flag, check_number, check_whole
from protorect.unitrows import UnitRows, inverse

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
    cosines = joint_cosines(support, query)  # (tasks, n, n), the support first
    lengths = torch.cat([support.scale, query.scale], dim=1) > 0  # 1, or 0 for a zero feature
    # A shift of all queries changes no distance between them.
    _, neighbours = nearest_others(cosines[:, n_support:, n_support:], options.neighbours)
    cosines.diagonal(dim1=-2, dim2=-1).copy_(lengths)

    labelled = membership(labels, ways).to(cosines.dtype).mT
    labelled = labelled.expand(len(cosines), ways, n_support)
    members = torch.nn.functional.pad(labelled, (0, n_query))  # (tasks, ways, n)
    shift = cosines.new_zeros(1, 1, n_support + n_query)
    prototypes = _means(members, members)
    if options.rectify:
        shift[..., :n_support], shift[..., n_support:] = 1 / n_support, -1 / n_query
        prototypes = _rectified(cosines, members, prototypes, shift, n_support)
    near = _nearness(cosines, prototypes, shift)[..., n_support:]
    return _agreement(near, neighbours, options).mT


# Everything the energy needs is in the cosines of the samples with each other. Below, a vector is
# its shares (n) in the samples: a prototype, the shift, a shifted query. The product of two is
# one's shares times the cosines times the other's shares.


def _means(weights: Tensor, members: Tensor) -> Tensor:
    return weights / members.sum(dim=-1, keepdim=True)


def _nearness(cosines: Tensor, prototypes: Tensor, shift: Tensor) -> Tensor:
    """Minus squared distances of shifted samples to prototypes but for a constant of the sample.

    2 (x + shift).p - |p|^2, as (tasks, ways, n).
    """
    products = prototypes @ cosines  # of each prototype with each sample
    offsets = ((2 * shift - prototypes) * products).sum(dim=-1, keepdim=True)
    return products.mul_(2).add_(offsets)


def _rectified(
    cosines: Tensor, members: Tensor, prototypes: Tensor, shift: Tensor, n_support: int
) -> Tensor:
    """Prototypes as means of the support and of the shifted queries nearest to each, weighted."""
    ways = prototypes.shape[-2]
    shifted = (shift < 0).to(cosines.dtype)  # 1 for a query, which is shifted
    products = torch.cat([prototypes, shift.expand(len(cosines), 1, -1)], dim=-2) @ cosines
    along, to_shift = products[:, :ways], products[:, ways:]
    squares = cosines.diagonal(dim1=-2, dim2=-1).unsqueeze(-2) + shifted * (
        2 * to_shift + (shift * to_shift).sum(dim=-1, keepdim=True)
    )
    prototype_squares = (prototypes * along).sum(dim=-1, keepdim=True)
    along = along + shifted * (shift * along).sum(dim=-1, keepdim=True)
    scores = along * _inverse_root(squares) * _inverse_root(prototype_squares)  # cosines

    joining = membership(predictions(scores[..., n_support:].mT), ways).mT
    members = torch.cat([members[..., :n_support], joining.to(members.dtype)], dim=-1)
    weights = _means(torch.softmax(_SHARPNESS * scores, dim=-2) * members, members)
    return weights + (weights * shifted).sum(dim=-1, keepdim=True) * shift


def _agreement(near: Tensor, neighbours: Tensor, options: LaplacianShotOptions) -> Tensor:
    """The bound updates, all queries at a time."""
    scores = near
    for _ in range(options.rounds):
        votes = _votes(torch.softmax(scores, dim=-2), neighbours)
        scores = torch.add(near, votes, alpha=options.weight)  # the update of algorithm 1
    return scores


def _votes(shares: Tensor, neighbours: Tensor) -> Tensor:
    """Sum over the neighbours (tasks, n_query, k) of their shares (tasks, ways, n_query)."""
    total = torch.zeros_like(shares)
    for place in neighbours.unbind(-1):
        total += shares.gather(-1, place.unsqueeze(-2).expand_as(shares))
    return total


def _inverse_root(squares: Tensor) -> Tensor:
    return inverse(squares.clamp_min(0).sqrt())
