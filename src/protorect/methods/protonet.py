"""Prototypical networks: the nearest class mean, on raw features.

Jake Snell, Kevin Swersky, Richard Zemel: "Prototypical Networks for Few-shot Learning", NeurIPS
2017. Here without their training: the class whose mean support feature is nearest by Euclidean
distance. Features are not normalized, so a long one counts for more than a short one.

Assumes that Euclidean distances between the raw features are meaningful.
"""

from torch import Tensor

from protorect._utils.parameters import Parameters
from protorect.core.functional import Features, basic_prototypes
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.gram import distance_scores
from protorect.methods.method import register


@register("protonet", Parameters(), "inductive", "nearest class mean by distance")
def protonet(
    support: Features, labels: Tensor, query: Features, ways: int, options: Parameters
) -> Tensor:
    """Minus squared distances to the class means, up to a constant per query."""
    prototypes = basic_prototypes(UnitRows.raw(support), labels, ways)
    return distance_scores(UnitRows.raw(query), prototypes)
