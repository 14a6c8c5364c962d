"""Prototypical networks: the nearest class mean, on the features as they come.

Jake Snell, Kevin Swersky, Richard Zemel: "Prototypical Networks for Few-shot Learning", NeurIPS
2017. Here without their training: the class whose mean support feature is nearest by Euclidean
distance. Features are not normalised, so a long one counts for more than a short one.

Assumes that distances between the features mean something at the length they have.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from protorect.core.functional import Features, basic_prototypes
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.nearness import nearness


@dataclass(frozen=True)
class ProtoNetOptions:
    """There is nothing to choose."""


def protonet(
    support: Features, labels: Tensor, query: Features, ways: int, options: ProtoNetOptions
) -> Tensor:
    """Minus squared distances to the class means, but for a constant of the query."""
    prototypes = basic_prototypes(UnitRows.raw(support), labels, ways)
    return nearness(UnitRows.raw(query), prototypes)
