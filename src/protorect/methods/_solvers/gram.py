"""Directions as sums of the samples of their task.

A method whose prototypes stay sums of samples, w_k = sum_i c_ki x_i, needs of the features nothing
but their inner products. Where the samples are fewer than the dimensions these are written once,
and a direction is its weights c_k: a round costs as much as the samples are many, however long the
features. Where they are more, a direction is written out, and a round passes over the samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from protorect.core.unit_rows import UnitRows, inverse
from protorect.methods._solvers.blocks import member_shares
from protorect.methods._solvers.nearness import joint_cosines

ROOM = 32 * 2**20  # bytes of the samples whose inner products are written at a time


class Span(ABC):
    """The sums of the samples of some tasks.

    Directions are tensors (tasks, ways, size) that may be added and multiplied; what they hold is
    the span's own affair.
    """

    n: int  # samples of a task

    @abstractmethod
    def combined(self, weights: Tensor) -> Tensor:
        """Directions: the sums of the samples under weights (tasks, ways, n)."""

    @abstractmethod
    def products(self, directions: Tensor) -> Tensor:
        """Of directions with every sample, (tasks, ways, n)."""

    @abstractmethod
    def squares(self, directions: Tensor, products: Tensor) -> Tensor:
        """Squared lengths (tasks, ways, 1) of directions whose products are known."""

    @abstractmethod
    def first(self, n: int) -> Span:
        """The span of the first n samples alone."""

    def cosines(self, directions: Tensor) -> Tensor:
        """Of directions with samples of length one, (tasks, ways, n)."""
        products = self.products(directions)
        return products.mul_(inverse(self.squares(directions, products).sqrt_()))

    def closeness(self, directions: Tensor) -> Tensor:
        """-|w_k - x_i|^2 / 2 but for the length of the sample, (tasks, ways, n)."""
        products = self.products(directions)
        return products.sub_(self.squares(directions, products), alpha=0.5)

    def class_means(self, members: Tensor) -> Tensor:
        """Means of the samples of each class, of which members (tasks, ways, n_support) tells."""
        return self.combined(self.padded(member_shares(members)))

    def padded(self, of_support: Tensor) -> Tensor:
        """Weights of the support (tasks, ways, n_support), and zeros for the queries behind it."""
        return torch.nn.functional.pad(of_support, (0, self.n - of_support.shape[-1]))


class FewSamples(Span):
    """Samples known by their inner products (tasks, n, n); a direction is its weights."""

    def __init__(self, gram: Tensor) -> None:
        self.n = gram.shape[-1]
        self._gram = gram

    def combined(self, weights: Tensor) -> Tensor:
        """The weights themselves."""
        return weights

    def products(self, directions: Tensor) -> Tensor:
        """By the inner products of the samples."""
        return directions @ self._gram

    def squares(self, directions: Tensor, products: Tensor) -> Tensor:
        """From the products: w_k is a sum of samples."""
        return (directions * products).sum(dim=-1, keepdim=True).clamp_min_(0)

    def first(self, n: int) -> Span:
        """By their own inner products."""
        return FewSamples(self._gram[..., :n, :n])


class ManySamples(Span):
    """Samples in one or several parts, (tasks, n of the part, dim); a direction is a vector."""

    def __init__(self, parts: Sequence[UnitRows]) -> None:
        self._parts = parts
        self._sizes = [part.scale.shape[-1] for part in parts]
        self.n = sum(self._sizes)

    def combined(self, weights: Tensor) -> Tensor:
        """Written out, (tasks, ways, dim)."""
        of_parts = zip(self._parts, torch.split(weights, self._sizes, dim=-1), strict=True)
        first, *others = (part.weighted_sum(own.mT) for part, own in of_parts)
        return sum(others, start=first)

    def products(self, directions: Tensor) -> Tensor:
        """One pass over the samples."""
        return torch.cat([part.products(directions).mT for part in self._parts], dim=-1)

    def squares(self, directions: Tensor, products: Tensor) -> Tensor:
        """From the vectors."""
        return directions.square().sum(dim=-1, keepdim=True)

    def first(self, n: int) -> Span:
        """The parts that hold them."""
        ends = accumulate(self._sizes)
        return ManySamples([p for p, end in zip(self._parts, ends, strict=True) if end <= n])


def span_of(samples: Tensor) -> Span:
    """The span of samples (tasks, n, dim) as they are."""
    if samples.shape[1] <= samples.shape[2]:
        return FewSamples(samples @ samples.mT)
    return ManySamples([UnitRows.raw(samples)])


def centred_span(support: UnitRows, query: UnitRows, shares: Tensor) -> Span:
    """The span of the samples less a centre, each brought back to length one.

    The centre is the sum of the support under shares (tasks, 1, n_support).
    """
    n_support, n_query = support.scale.shape[-1], query.scale.shape[-1]
    if n_support + n_query > query.rows.shape[-1]:
        centre = support.weighted_sum(shares.mT).squeeze(-2)
        return ManySamples([part.shifted(-centre) for part in (support, query)])
    return FewSamples(_centred(joint_cosines(support, query), n_support, shares))


def _centred(gram: Tensor, n_support: int, shares: Tensor) -> Tensor:
    """Cosines of samples less their centre, from the samples' cosines (tasks, n, n)."""
    along = gram[..., :n_support] @ shares.mT  # (tasks, n, 1), with the centre
    square = shares @ along[..., :n_support, :]  # (tasks, 1, 1), of the centre
    gram = gram - along
    gram -= along.mT
    gram += square
    lengths = gram.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    # What rounding leaves of a difference that is zero must not be blown up to length one.
    rounding = 16 * torch.finfo(gram.dtype).eps * (1 + square)
    scale = torch.where(lengths > rounding, lengths.rsqrt(), 0.0)
    return gram.mul_(scale).mul_(scale.mT)
