"""Soft k-means: prototypes refined by the soft assignment of the queries.

Mengye Ren, Eleni Triantafillou, Sachin Ravi, Jake Snell, Kevin Swersky, Joshua B. Tenenbaum, Hugo
Larochelle, Richard S. Zemel: "Meta-Learning for Semi-Supervised Few-Shot Classification", ICLR
2018, section 3.1.1, without their training, the queries taken as the unlabeled samples. As there,
features are not normalized and one round is taken.

Assumes that every query belongs to one of the classes, and that classes differ more than their
samples do. The softmax is of squared distances: where the features are long it is nearly one-hot.
`normalise=true` with `scale=10` is softer.
"""

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import Features, basic_prototypes, membership
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.gram import distance_scores
from protorect.methods.method import register


class SoftKMeansOptions(Parameters):
    """Options of the refinement."""

    rounds: int = parameter(1, "Number of refinements; one in the paper.")
    normalise: bool = parameter(False, "Whether features are normalized first; not in the paper.")
    scale: float = parameter(1.0, "Factor of the squared distances in the softmax; 1 in the paper.")


@register("soft-kmeans", SoftKMeansOptions(), "transductive", "class means refined by the queries")
def soft_kmeans(
    support: Features, labels: Tensor, query: Features, ways: int, options: SoftKMeansOptions
) -> Tensor:
    """Minus squared distances to the refined prototypes, up to a constant per query."""
    as_rows = UnitRows.of if options.normalise else UnitRows.raw
    support, query = as_rows(support), as_rows(query)
    members = membership(labels, ways).to(support.scale.dtype)  # (..., n_support, ways)
    class_sums, counts = support.weighted_sum(members), members.sum(dim=-2)
    prototypes = basic_prototypes(support, labels, ways)
    for _ in range(options.rounds):
        p = torch.softmax(options.scale * distance_scores(query, prototypes), dim=-1)
        total = class_sums + query.weighted_sum(p)
        prototypes = total / (counts + p.sum(dim=-2)).unsqueeze(-1)
    return distance_scores(query, prototypes)
