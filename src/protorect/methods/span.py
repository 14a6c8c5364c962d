"""Prototypes as combinations of the samples of their task.

A method whose prototypes stay sums of samples, w_k = sum_i c_ki x_i, needs of the features nothing
but their inner products. With fewer samples than dimensions those are written once, and a round
costs as much as the samples are many, however long the features.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protorect.methods.blocks import member_shares

ROOM = 8 * 2**20  # bytes of the samples whose inner products are written at a time


class Span:
    """The samples of some tasks (tasks, n, dim), known by their inner products."""

    def __init__(self, samples: Tensor) -> None:
        self.n = samples.shape[1]
        few = self.n <= samples.shape[2]
        self._gram = samples @ samples.mT if few else None
        self._samples = None if few else samples

    def products(self, shares: Tensor) -> Tensor:
        """Of prototypes, given as shares of the samples, with every sample: (tasks, ways, n)."""
        if self._gram is not None:
            return shares @ self._gram
        assert self._samples is not None
        return (shares @ self._samples) @ self._samples.mT

    def closeness(self, shares: Tensor) -> Tensor:
        """-|w_k - x_i|^2 / 2 but for the length of the sample, (tasks, ways, n)."""
        products = self.products(shares)
        squares = (products * shares).sum(dim=-1, keepdim=True)
        return products.sub_(squares, alpha=0.5)

    def class_means(self, members: Tensor) -> Tensor:
        """Shares of the mean of each class's support, (tasks, ways, n)."""
        n_support = members.shape[-1]
        return torch.nn.functional.pad(member_shares(members), (0, self.n - n_support))
