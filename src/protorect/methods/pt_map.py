"""PT-MAP: power transform, then class centers and a balanced assignment in turn.

Yuqing Hu, Vincent Gripon, Stéphane Pateux: "Leveraging the Feature Distribution in Transfer-based
Few-Shot Learning", ICANN 2021.

Every entry of a feature is raised to a power and the features are normalized; support and queries
are each centered on their own mean and normalized again. Then, in turn, queries are assigned to the
centers by optimal transport, and the centers move toward the mean of their assigned samples.

Assumes exactly balanced classes among the queries; accuracy falls much where they are not.
"""

from typing import Literal

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.unit_rows import inverse, row_norms
from protorect.methods._solvers.blocks import blockwise
from protorect.methods._solvers.gram import span_of
from protorect.methods._solvers.sinkhorn import balance_exactly
from protorect.methods.method import register


class PtMapOptions(Parameters):
    """Options of PT-MAP; the defaults are those of the authors' code."""

    power: float = parameter(
        0.5, "beta, the exponent of the entries; signs are kept.", minimum=0.01, maximum=10
    )
    sharpness: float = parameter(
        10.0, "lambda, the factor of the squared distances in the assignment.", maximum=100
    )
    steps: int = parameter(20, "Number of updates of the centers.")
    rate: float = parameter(
        0.2, "alpha, how far a center moves to the mean of its assigned samples.", maximum=1
    )
    prior: Literal["equal", "free"] = parameter(
        "equal",
        'Class proportions of the queries. "equal": balanced, as in the paper. "free": unknown, '
        "each query is assigned independently.",
    )


@register("pt-map", PtMapOptions(), "transductive", "power transform, then balanced assignment")
@blockwise()
def pt_map(samples: Tensor, members: Tensor, options: PtMapOptions) -> Tensor:
    """Log-probabilities of the queries."""
    n_support, n_query = members.shape[-1], samples.shape[1] - members.shape[-1]
    # Fewer queries than classes cannot be balanced, and their mean is not that of the classes.
    enough = n_query >= members.shape[1]
    span = span_of(_transform(samples, n_support, options.power, own_mean=enough))
    centers = span.class_means(members)
    potentials = torch.zeros_like(centers[..., :1], dtype=torch.float64)
    for step in range(options.steps + 1):
        logits = span.squared_distances(centers)[..., n_support:] * -options.sharpness
        if enough and options.prior == "equal":
            log_p, potentials = balance_exactly(logits, potentials)
        else:
            log_p = torch.log_softmax(logits, dim=1)
        if step < options.steps:
            weights = torch.cat([members, log_p.exp()], dim=-1)
            weights /= weights.sum(dim=-1, keepdim=True)
            centers.lerp_(span.combine(weights), options.rate)
    return log_p.mT


def _transform(samples: Tensor, n_support: int, power: float, own_mean: bool) -> Tensor:
    """The samples after the power transform, centered and normalized."""
    powers = _normalize(samples.abs().add_(1e-6).pow_(power).copysign_(samples))
    support, query = powers[:, :n_support], powers[:, n_support:]
    mean = support.mean(dim=1, keepdim=True)
    query -= query.mean(dim=1, keepdim=True) if own_mean else mean
    support -= mean
    return _normalize(powers)


def _normalize(rows: Tensor) -> Tensor:
    """In place."""
    return rows.mul_(inverse(row_norms(rows)).unsqueeze(-1))
