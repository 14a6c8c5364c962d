"""Prototypical networks: the nearest class mean, on raw features.

Jake Snell, Kevin Swersky, Richard Zemel: "Prototypical Networks for Few-shot Learning", NeurIPS
2017. Here without their training: the class whose mean support feature is nearest by Euclidean
distance. Features are not normalized, so a long one counts for more than a short one.

Assumes that Euclidean distances between the raw features are meaningful.
"""

from protorect._utils.parameters import Parameters
from protorect.core.functional import class_means
from protorect.core.unit_rows import RawRows
from protorect.methods.interface import Task
from protorect.methods.method import register
from protorect.methods.rules import DistanceRule


@register("protonet", Parameters(), "inductive", "nearest class mean by distance")
def protonet(task: Task, options: Parameters) -> DistanceRule:
    """Minus squared distances to the class means."""
    support = RawRows.of(task.support).with_squares()
    return DistanceRule(class_means(support, task.labels, task.ways), normalize=False)
