"""Matching networks: attention over the support samples.

Oriol Vinyals, Charles Blundell, Timothy Lillicrap, Koray Kavukcuoglu, Daan Wierstra: "Matching
Networks for One Shot Learning", NeurIPS 2016, eq. (1) and section 2.1.1, without their training and
without full context embeddings: attention is a softmax of cosines over the support.

Assumes the same class proportions in support and queries: a class with more samples gets more
attention.
"""

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import Features, membership
from protorect.core.unit_rows import UnitRows
from protorect.methods.method import register


class MatchingOptions(Parameters):
    """Options of the attention."""

    scale: float = parameter(
        1.0, "Factor of the cosines, 1 in the paper; a higher one favors the nearest samples."
    )


@register("matching", MatchingOptions(), "inductive", "attention over the support, by cosine")
def matching(
    support: Features, labels: Tensor, query: Features, ways: int, options: MatchingOptions
) -> Tensor:
    """Total attention on each class, (tasks, n_query, ways)."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    cosines = query.cosines_with(support)  # (tasks, n_query, n_support)
    attention = torch.softmax(options.scale * cosines, dim=-1)
    return attention @ membership(labels, ways).to(attention.dtype)
