"""SimpleShot: center, normalize, take the nearest class mean.

Yan Wang, Wei-Lun Chao, Kilian Q. Weinberger, Laurens van der Maaten: "SimpleShot: Revisiting
Nearest-Neighbor Classification for Few-Shot Learning", 2019. Their best variant, CL2N,
subtracts the mean feature of the base classes, normalizes, and takes the nearest class mean by
Euclidean distance. Episodes do not contain the base mean: give it as `base_mean` in Python, or on
the command line a feature file of the base classes as `--base`. Without it nothing is subtracted
(their L2N), or, with `center=support`, the mean of the support.

Assumes nothing about the queries. Centering on the support assumes the same number of samples in
every class, and if there are few, removes part of the differences between classes.
"""

from typing import Literal

from protorect._utils.parameters import parameter
from protorect.core.functional import basic_prototypes
from protorect.core.unit_rows import RawRows
from protorect.errors import OptionError
from protorect.methods.centering import CenteringOptions
from protorect.methods.interface import Task
from protorect.methods.method import register
from protorect.methods.rules import DistanceRule


class SimpleShotOptions(CenteringOptions):
    """Options of SimpleShot."""

    center: Literal["none", "support"] = parameter(
        "none",
        'What is subtracted where no base mean is given: "none" (L2N), or the mean of the '
        '"support" features.',
        aliases=("centre",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base_mean is not None and self.center != "none":
            raise OptionError("base_mean is given and center is 'support'; give one of the two.")


@register("simpleshot", SimpleShotOptions(), "inductive", "as protonet, on normalized features")
def simpleshot(task: Task, options: SimpleShotOptions) -> DistanceRule:
    """Minus squared distances to the class means."""
    rows = RawRows.of(task.support)
    center = rows.mean() if options.center == "support" else options.base_center(rows)
    support = task.support if center is None else rows.rows - center.unsqueeze(-2)
    return DistanceRule(basic_prototypes(support, task.labels, task.ways), center)
