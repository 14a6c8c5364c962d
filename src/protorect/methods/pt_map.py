"""PT-MAP: power transform, then class centers and a balanced assignment in turn.

Yuqing Hu, Vincent Gripon, Stéphane Pateux: "Leveraging the Feature Distribution in Transfer-based
Few-Shot Learning", ICANN 2021.

Every entry of a feature is raised to a power and the features are normalized; support and queries
are each centered on their own mean and normalized again. Then, in turn, queries are assigned to the
centers by optimal transport, and the centers move toward the mean of their assigned samples.
Support samples stay assigned to the class of their label.

Assumes exactly balanced classes among the queries; accuracy falls much where they are not.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import Features
from protorect.core.unit_rows import RawRows, UnitRows, inverse, row_norms
from protorect.methods._solvers.blocks import Block, BlockSolution, blockwise
from protorect.methods._solvers.gram import span_of
from protorect.methods._solvers.sinkhorn import balance_exactly
from protorect.methods.method import register
from protorect.methods.rules import Rule, distance_scores_by_class, in_blocks


class PtMapOptions(Parameters):
    """Options of PT-MAP; the defaults are those of the authors' code."""

    power: float = parameter(
        0.5, "beta, the exponent of the entries; signs are kept.", minimum=0.01, maximum=10
    )
    sharpness: float = parameter(
        10.0, "lambda, the factor of the squared distances in the assignment.", maximum=100
    )
    iterations: int = parameter(20, "Number of updates of the centers.", aliases=("steps",))
    rate: float = parameter(
        0.2, "alpha, how far a center moves to the mean of its assigned samples.", maximum=1
    )
    proportions: Literal["equal", "free"] = parameter(
        "equal",
        'Class proportions of the queries. "equal": balanced, as in the paper. "free": unknown, '
        "each query is assigned independently.",
        aliases=("prior",),
    )


@dataclass(frozen=True, eq=False)
class PtMapRule(Rule):
    """Log-probability up to a constant per sample, with the potentials that balance the classes."""

    centers: Annotated[Tensor, "tasks ways dim"]
    mean: Annotated[Tensor, "tasks dim"]  # of the unlabeled samples after the power transform
    potentials: Annotated[Tensor, "tasks ways"]
    power: float
    sharpness: float

    def _score(self, samples: Features) -> Tensor:
        return in_blocks(self._score_block, RawRows.of(samples).rows)

    def _score_block(self, rows: Tensor) -> Tensor:
        powers = _power_transform(UnitRows.of(rows).materialize(), self.power)
        transformed = RawRows(_normalize(powers.sub_(self.mean.unsqueeze(-2))))
        scores = distance_scores_by_class(transformed, self.centers).mul_(self.sharpness)
        return scores.add_(self.potentials.unsqueeze(-1)).mT


@register("pt-map", PtMapOptions(), "transductive", "power transform, then balanced assignment")
@blockwise()
def pt_map(block: Block, options: PtMapOptions) -> BlockSolution:
    """Log-probabilities."""
    members, n_support, n_query = block.members, block.n_support, block.n_unlabeled
    # Fewer queries than classes cannot be balanced, and their mean is not that of the classes.
    enough = n_query >= members.shape[1]
    powers = _power_transform(block.samples, options.power)
    support_mean = powers[:, :n_support].mean(dim=1, keepdim=True)
    mean = powers[:, n_support:].mean(dim=1, keepdim=True) if enough else support_mean
    powers[:, :n_support] -= support_mean
    powers[:, n_support:] -= mean
    span = span_of(_normalize(powers))
    centers = span.class_means(members)
    potentials = torch.zeros_like(centers[..., :1], dtype=torch.float64)
    for iteration in range(options.iterations + 1):
        logits = span.squared_distances_by_class(centers)[..., n_support:] * -options.sharpness
        if enough and options.proportions == "equal":
            log_p, potentials = balance_exactly(logits, potentials)
        else:
            log_p = torch.log_softmax(logits, dim=1)
        if iteration < options.iterations:
            weights = torch.cat([members, log_p.exp()], dim=-1)
            weights /= weights.sum(dim=-1, keepdim=True)
            centers.lerp_(span.combine(weights), options.rate)
    return log_p, lambda: PtMapRule(
        span.vectors(centers),
        mean.squeeze(1),
        potentials.squeeze(-1).to(mean.dtype),
        options.power,
        options.sharpness,
    )


def _power_transform(samples: Tensor, power: float) -> Tensor:
    """The power of every entry, its sign kept; rows of unit length."""
    return _normalize(samples.abs().add_(1e-6).pow_(power).copysign_(samples))


def _normalize(rows: Tensor) -> Tensor:
    """In place."""
    return rows.mul_(inverse(row_norms(rows)).unsqueeze(-1))
