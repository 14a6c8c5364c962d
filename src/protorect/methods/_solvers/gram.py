"""Inner products of samples with each other and with linear combinations of them.

A method whose prototypes stay linear combinations of the samples, w_k = sum_i c_ki x_i, needs only
the samples' inner products (their Gram matrix). Where a task has fewer samples than dimensions,
`GramSpan` computes that matrix once, and an iteration costs the same whatever the dimension.
Otherwise `FeatureSpan` keeps the vectors w_k, and an iteration passes over the samples.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.functional import pad

from protorect.core.unit_rows import RawRows, Rows, UnitRows, inverse
from protorect.methods._solvers.blocks import class_mean_weights

_MAX_WITHOUT_TOPK = 4  # up to so many neighbors are found by one maximum after another
_BLOCK_BYTES = 256 * 2**20  # of cosines at once


class Span(ABC):
    """The linear span of the n samples of each task.

    A direction is one row of a tensor (tasks, ways, size), which may be added and scaled: the
    coefficients c_k (`GramSpan`) or the vector w_k (`FeatureSpan`).
    """

    n: int

    @abstractmethod
    def combine(self, weights: Tensor) -> Tensor:
        """Directions: the weighted sums of the samples, weights (tasks, ways, n)."""

    @abstractmethod
    def products_by_class(self, directions: Tensor) -> Tensor:
        """Inner product of each direction with each sample, (tasks, ways, n)."""

    @abstractmethod
    def squared_norms(self, directions: Tensor, products: Tensor) -> Tensor:
        """Squared norms (tasks, ways, 1) of directions whose `products_by_class` are known."""

    @abstractmethod
    def vectors(self, directions: Tensor) -> Tensor:
        """The directions as vectors (tasks, ways, dim)."""

    @abstractmethod
    def first(self, n: int) -> "Span":
        """The span of the first n samples alone."""

    def cosines_by_class(self, directions: Tensor) -> Tensor:
        """Cosine of each direction with each sample of unit length, (tasks, ways, n)."""
        products = self.products_by_class(directions)
        return products.mul_(inverse(self.squared_norms(directions, products).sqrt_()))

    def squared_distances_by_class(self, directions: Tensor) -> Tensor:
        """|w_k - x_i|^2 up to the constant |x_i|^2, (tasks, ways, n)."""
        products = self.products_by_class(directions)
        return torch.sub(self.squared_norms(directions, products), products, alpha=2)

    def class_means(self, members: Tensor) -> Tensor:
        """Directions of the class means; members (tasks, ways, n_support) are 1 or 0."""
        return self.combine(self.pad_queries(class_mean_weights(members)))

    def pad_queries(self, weights: Tensor) -> Tensor:
        """Weights of the support (tasks, ways, n_support), with zeros for the queries after it."""
        return pad(weights, (0, self.n - weights.shape[-1]))


class GramSpan(Span):
    """Samples given by their Gram matrix (tasks, n, n); `parts` makes the samples themselves."""

    def __init__(self, gram: Tensor, parts: Callable[[], Sequence[Rows]]) -> None:
        self.n = gram.shape[-1]
        self._gram = gram
        self._parts = parts

    def combine(self, weights: Tensor) -> Tensor:
        return weights

    def products_by_class(self, directions: Tensor) -> Tensor:
        return directions @ self._gram

    def squared_norms(self, directions: Tensor, products: Tensor) -> Tensor:
        return (directions * products).sum(dim=-1, keepdim=True).clamp_min_(0)

    def vectors(self, directions: Tensor) -> Tensor:
        return FeatureSpan(self._parts()).combine(directions)

    def first(self, n: int) -> "Span":
        return GramSpan(self._gram[..., :n, :n], lambda: _first(self._parts(), n))


class FeatureSpan(Span):
    """Samples given by their features, in one or several parts (tasks, n of the part, dim)."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = parts
        self.n = sum(part.n for part in parts)

    def combine(self, weights: Tensor) -> Tensor:
        sizes = [part.n for part in self._parts]
        of_parts = zip(self._parts, torch.split(weights, sizes, dim=-1), strict=True)
        first, *others = (part.weighted_sum_by_class(own) for part, own in of_parts)
        return sum(others, start=first)

    def products_by_class(self, directions: Tensor) -> Tensor:
        return torch.cat([part.products_by_class(directions) for part in self._parts], dim=-1)

    def squared_norms(self, directions: Tensor, products: Tensor) -> Tensor:
        return directions.square().sum(dim=-1, keepdim=True)

    def vectors(self, directions: Tensor) -> Tensor:
        return directions

    def first(self, n: int) -> "Span":
        return FeatureSpan(_first(self._parts, n))


def _first(parts: Sequence[Rows], n: int) -> list[Rows]:
    """The parts that are within the first n samples."""
    ends = accumulate(part.n for part in parts)
    return [part for part, end in zip(parts, ends, strict=True) if end <= n]


def span_of(samples: Tensor) -> "Span":
    """The span of samples (tasks, n, dim), which are not normalized."""
    rows = RawRows(samples)
    if samples.shape[1] <= samples.shape[2]:
        return GramSpan(samples @ samples.mT, lambda: [rows])
    return FeatureSpan([rows])


def centered_span(support: UnitRows, query: UnitRows, weights: Tensor) -> "Span":
    """The span of the samples minus a center, renormalized.

    The center is the weighted sum of the support, weights (tasks, 1, n_support).
    """

    def centered() -> list[UnitRows]:
        center = support.weighted_sum_by_class(weights).squeeze(-2)
        return [part.shifted(-center) for part in (support, query)]

    if support.n + query.n > query.rows.shape[-1]:
        return FeatureSpan(centered())
    return GramSpan(_center(joint_cosines(support, query), support.n, weights), centered)


def _center(gram: Tensor, n_support: int, weights: Tensor) -> Tensor:
    """Cosines of the centered samples, from the samples' cosines (tasks, n, n)."""
    with_center = gram[..., :n_support] @ weights.mT  # (tasks, n, 1)
    center_square = weights @ with_center[..., :n_support, :]  # (tasks, 1, 1)
    gram = gram - with_center
    gram -= with_center.mT
    gram += center_square
    squares = gram.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    # A difference that is zero up to rounding stays zero instead of becoming a unit vector.
    rounding = 16 * torch.finfo(gram.dtype).eps * (1 + center_square)
    scale = torch.where(squares > rounding, squares.rsqrt(), 0.0)
    return gram.mul_(scale).mul_(scale.mT)


def joint_cosines(support: UnitRows, query: UnitRows) -> Tensor:
    """Cosines of all samples with each other, support first: (tasks, n, n), symmetric."""
    tasks, n_support = support.scale.shape
    n = n_support + query.scale.shape[1]
    joint = query.scale.new_empty(tasks, n, n)
    across = query.cosines_with(support)  # (tasks, n_query, n_support)
    joint[:, :n_support, :n_support] = support.cosines_with(support)
    joint[:, :n_support, n_support:] = across.mT
    joint[:, n_support:, :n_support] = across
    joint[:, n_support:, n_support:] = query.cosines_with(query).mT
    return joint


def nearest_neighbors(cosines: Tensor, count: int, first: int = 0) -> tuple[Tensor, Tensor]:
    """For each sample the `count` others (or all) of highest cosine, (tasks, n, count).

    Returns the cosines, highest first, and the positions, from cosines (tasks, n, n), or from those
    of some consecutive samples with all, the first of them at position `first`. `cosines` is
    modified and then restored: nothing else may use it meanwhile.
    """
    diagonal = cosines.diagonal(first, dim1=-2, dim2=-1)
    saved = diagonal.clone()
    diagonal.fill_(-torch.inf)  # a sample is not its own neighbor
    count = min(count, cosines.shape[-1] - 1)
    if count > _MAX_WITHOUT_TOPK:
        values, positions = cosines.topk(count, dim=-1)
    else:  # `laplacian-shot` is 1.3 times as fast with two maxima as with topk
        values = cosines.new_empty(*cosines.shape[:-1], count)
        positions = torch.empty_like(values, dtype=torch.long)
        for i in range(count):
            largest = cosines.max(dim=-1, keepdim=True)
            values[..., i : i + 1], positions[..., i : i + 1] = largest
            cosines.scatter_(-1, largest.indices, -torch.inf)
        cosines.scatter_(-1, positions, values)
    diagonal.copy_(saved)
    return values, positions


def nearest_rows(samples: UnitRows, count: int) -> Tensor:
    """Positions (tasks, n, count) of each sample's nearest others, without all cosines at once."""
    directions = samples.materialize()
    tasks, n, _ = directions.shape
    size = max(1, _BLOCK_BYTES // max(1, tasks * n * directions.element_size()))
    blocks = torch.split(directions, size, dim=1)
    starts = range(0, n, size)
    positions = [
        nearest_neighbors(block @ directions.mT, count, first)[1]
        for block, first in zip(blocks, starts, strict=True)
    ]
    return torch.cat(positions, dim=1)
