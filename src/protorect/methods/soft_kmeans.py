"""Soft k-means: queries refine the prototypes by how much each belongs to each class.

Mengye Ren, Eleni Triantafillou, Sachin Ravi, Jake Snell, Kevin Swersky, Joshua B. Tenenbaum, Hugo
Larochelle, Richard S. Zemel: "Meta-Learning for Semi-Supervised Few-Shot Classification", ICLR
2018, section 3.1.1, without their training, the queries taken as the unlabelled samples. As there,
features are not normalised and one round is taken.

Assumes that every query belongs to one of the classes, and that classes differ more than their
samples do. The softmax is of squared distances: where the features are long it is all but a
maximum, and every query counts for one class only. `normalise=true` with `scale=10` is softer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect._utils.parameters import check_flag, check_number, check_whole
from protorect.core.functional import Features, basic_prototypes, membership
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.nearness import nearness


@dataclass(frozen=True)
class SoftKMeansOptions:
    """The choices of the refinement.

    Parameters
    ----------
    rounds
        How often the prototypes are refined; once in the paper.
    normalise
        Whether features are brought to length one first; not in the paper.
    scale
        The factor of the squared distances in the softmax; 1 in the paper.
    """

    rounds: int = 1
    normalise: bool = False
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 0)
        check_flag("normalise", self.normalise)
        check_number("scale", self.scale)


def soft_kmeans(
    support: Features, labels: Tensor, query: Features, ways: int, options: SoftKMeansOptions
) -> Tensor:
    """Minus squared distances to the refined prototypes, but for a constant of the query."""
    rows_of = UnitRows.of if options.normalise else UnitRows.raw
    support, query = rows_of(support), rows_of(query)
    members = membership(labels, ways).to(support.scale.dtype)  # (..., n_support, ways)
    labelled, counts = support.weighted_sum(members), members.sum(dim=-2)
    prototypes = basic_prototypes(support, labels, ways)
    for _ in range(options.rounds):
        shares = torch.softmax(options.scale * nearness(query, prototypes), dim=-1)
        total = labelled + query.weighted_sum(shares)
        prototypes = total / (counts + shares.sum(dim=-2)).unsqueeze(-1)
    return nearness(query, prototypes)
