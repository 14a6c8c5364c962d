"""Soft k-means: prototypes refined by the soft assignment of the queries.

Mengye Ren, Eleni Triantafillou, Sachin Ravi, Jake Snell, Kevin Swersky, Joshua B. Tenenbaum, Hugo
Larochelle, Richard S. Zemel: "Meta-Learning for Semi-Supervised Few-Shot Classification", ICLR
2018, section 3.1.1, without their training, the queries taken as the unlabeled samples. As there,
features are not normalized, one round is taken, and a support sample counts for the class of its
label, whatever it is nearest to.

Assumes that every query belongs to one of the classes, and that classes differ more than their
samples do. The softmax is of squared distances: where the features are long it is nearly one-hot.
`normalize=true` with `scale=10` is softer.
"""

import torch

from protorect._utils.parameters import Parameters, parameter
from protorect.core.unit_rows import Rows
from protorect.methods._solvers.blocks import class_mean_weights
from protorect.methods.interface import Solution, Task, with_prior
from protorect.methods.method import register
from protorect.methods.rules import DistanceRule, assigned_means, distance_scores_by_class


class SoftKMeansOptions(Parameters):
    """Options of the refinement."""

    iterations: int = parameter(1, "Number of refinements; one in the paper.", aliases=("rounds",))
    normalize: bool = parameter(
        False, "Whether features are normalized first; not in the paper.", aliases=("normalise",)
    )
    scale: float = parameter(1.0, "Factor of the squared distances in the softmax; 1 in the paper.")


@register(
    "soft-kmeans",
    SoftKMeansOptions(),
    "transductive",
    "class means refined by the queries",
    uses_prior=True,
)
def soft_kmeans(task: Task, options: SoftKMeansOptions) -> Solution:
    """Minus squared distances to the refined prototypes, up to a constant per sample."""
    support: Rows
    unlabeled: Rows
    if options.normalize:
        support, unlabeled = task.unit_rows()
    else:
        support, unlabeled = (rows.with_squares() for rows in task.raw_rows())
    members, prior = task.members_by_class(), task.prior_by_class()
    prototypes = support.weighted_sum_by_class(class_mean_weights(members))
    for _ in range(options.iterations):
        logits = options.scale * distance_scores_by_class(unlabeled, prototypes)
        p = torch.softmax(with_prior(logits, prior), dim=-2)
        prototypes = assigned_means(support, members, unlabeled, p)
    scores = distance_scores_by_class(unlabeled, prototypes)
    scores = with_prior(scores, task.prior_by_class(options.scale))
    return Solution.by_class(scores, lambda: DistanceRule(prototypes, normalize=options.normalize))
