"""Matching networks: attention over the support samples.

Oriol Vinyals, Charles Blundell, Timothy Lillicrap, Koray Kavukcuoglu, Daan Wierstra: "Matching
Networks for One Shot Learning", NeurIPS 2016, eq. (1) and section 2.1.1, without their training and
without full context embeddings: attention is a softmax of cosines over the support.

Assumes the same class proportions in support and queries: a class with more samples gets more
attention.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import Features
from protorect.core.unit_rows import UnitRows
from protorect.methods.interface import Task
from protorect.methods.method import register
from protorect.methods.rules import Rule


class MatchingOptions(Parameters):
    """Options of the attention."""

    scale: float = parameter(
        1.0, "Factor of the cosines, 1 in the paper; a higher one favors the nearest samples."
    )


@dataclass(frozen=True, eq=False)
class MatchingRule(Rule):
    """Total attention on the support samples of each class."""

    rows: Annotated[Tensor, "tasks support dim"]
    inverse_norms: Annotated[Tensor, "tasks support"]
    members: Annotated[Tensor, "tasks ways support"]
    scale: float

    def _score(self, samples: Features) -> Tensor:
        support = UnitRows(self.rows, self.inverse_norms)
        cosines = UnitRows.of(samples).cosines_with(support)  # (tasks, n, n_support)
        return torch.softmax(self.scale * cosines, dim=-1) @ self.members.mT


@register("matching", MatchingOptions(), "inductive", "attention over the support, by cosine")
def matching(task: Task, options: MatchingOptions) -> MatchingRule:
    """Attention; the rule holds the support."""
    support = UnitRows.of(task.support)
    return MatchingRule(support.rows, support.scale, task.members_by_class(), options.scale)
