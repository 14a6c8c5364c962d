"""PT-MAP: power transform, then class centres and an assignment to equal classes in turn.

Yuqing Hu, Vincent Gripon, Stéphane Pateux: "Leveraging the Feature Distribution in Transfer-based
Few-Shot Learning", ICANN 2021.

Every entry of a feature is raised to a power, the features are brought to length one, support and
queries are each centred on their own mean, and brought to length one again. Then, in turn: queries
are assigned to the centres by optimal transport, and the centres move towards the mean of what they
were assigned.

Assumes that the queries hold the classes in exactly equal parts, and loses much where they do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from protorect._utils.parameters import check_number, check_whole
from protorect.core.functional import Features
from protorect.core.unit_rows import inverse, row_norms
from protorect.errors import unknown_name
from protorect.methods._solvers.blocks import blocks
from protorect.methods._solvers.gram import ROOM, span_of
from protorect.methods._solvers.transport import equal_parts

_PRIORS = ("equal", "free")


@dataclass(frozen=True)
class PtMapOptions:
    """The choices of PT-MAP; the defaults are those of the authors' program.

    Parameters
    ----------
    power
        beta, what the entries of a feature are raised to; a negative entry keeps its sign.
    sharpness
        lambda, the factor of the squared distances in the assignment.
    steps
        How often the centres move.
    rate
        alpha, how far they move towards the mean of what they were assigned.
    prior
        "equal": every class has as many queries, as in the paper. "free": nothing is said of the
        classes' sizes, and each query is assigned on its own.
    """

    power: float = 0.5
    sharpness: float = 10.0
    steps: int = 20
    rate: float = 0.2
    prior: Literal["equal", "free"] = "equal"

    def __post_init__(self) -> None:
        check_number("power", self.power, least=0.01, most=10.0)
        check_number("sharpness", self.sharpness, most=100.0)
        check_whole("steps", self.steps)
        check_number("rate", self.rate, most=1.0)
        if self.prior not in _PRIORS:
            raise unknown_name("prior", str(self.prior), _PRIORS)


@torch.no_grad()
def pt_map(
    support: Features, labels: Tensor, query: Features, ways: int, options: PtMapOptions
) -> Tensor:
    """Logarithms of the queries' probabilities (tasks, n_query, ways)."""
    parts = blocks(support, labels, query, ways, ROOM)
    return torch.cat([_mapped(*part, options) for part in parts])


def _mapped(samples: Tensor, members: Tensor, options: PtMapOptions) -> Tensor:
    n_support, n_query = members.shape[-1], samples.shape[1] - members.shape[-1]
    # Fewer queries than classes cannot hold the classes in equal parts: then neither their mean
    # nor their number says anything, and each is taken on its own.
    enough = n_query >= members.shape[1]
    equal = enough and options.prior == "equal"
    span = span_of(_transformed(samples, n_support, options.power, own_mean=enough))
    centres = span.class_means(members)
    potentials = torch.zeros_like(centres[..., :1], dtype=torch.float64)
    for step in range(options.steps + 1):
        # exp(-lambda |x - c|^2), but for the length of x, which falls out
        affinities = span.closeness(centres)[..., n_support:] * (2 * options.sharpness)
        if equal:
            log_p, potentials = equal_parts(affinities, potentials)
        else:
            log_p = torch.log_softmax(affinities, dim=1)
        if step < options.steps:
            assigned = torch.cat([members, log_p.exp()], dim=-1)
            assigned /= assigned.sum(dim=-1, keepdim=True)
            centres.lerp_(span.combined(assigned), options.rate)
    return log_p.mT


def _transformed(samples: Tensor, n_support: int, power: float, own_mean: bool) -> Tensor:
    """The samples after the power transform, centred, each of length one."""
    powers = samples.abs().add_(1e-6).pow_(power).copysign_(samples)
    _bring_to_length_one(powers)
    support, query = powers[:, :n_support], powers[:, n_support:]
    mean = support.mean(dim=1, keepdim=True)
    query -= query.mean(dim=1, keepdim=True) if own_mean else mean
    support -= mean
    return _bring_to_length_one(powers)


def _bring_to_length_one(rows: Tensor) -> Tensor:
    return rows.mul_(inverse(row_norms(rows)).unsqueeze(-1))
