"""Feature rows: as they are (`RawRows`), or lazily normalized (`UnitRows`).

The method works on normalized features, then on normalized features that were shifted and
renormalized. Materializing those would cost a pass over memory and a second copy of the queries.
`UnitRows` holds the raw rows and the factors that make them unit rows:

    x_i = scale_i * rows_i + gain_i * shift

The paper's equations need only products of such rows with a few vectors, to which the factors
can be applied afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from protorect.errors import DataError


def evenly_spaced(n: int, maximum: int) -> slice:
    """At most `maximum` of n rows, evenly spaced; all of them if there are no more.

    >>> list(range(10))[evenly_spaced(10, 4)]
    [0, 3, 6, 9]
    """
    return slice(None, None, max(1, -(-n // maximum)))


def row_norms(rows: Tensor) -> Tensor:
    """Norm of each row, (..., n, dim) -> (..., n), also where its squares are out of range."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1, dtype=_at_least_float32(rows.dtype))
    # The squares of a row beyond these lengths leave the range of float32.
    extreme = ~((norms > 1e-15) & (norms < 1e15))
    if extreme.any():
        largest = rows[extreme].abs().amax(dim=-1, keepdim=True).to(norms.dtype)
        scaled = torch.where(largest > 0, rows[extreme] / largest, 0.0)
        norms[extreme] = torch.linalg.vector_norm(scaled, dim=-1) * largest.squeeze(-1)
    return norms


@dataclass(frozen=True, eq=False)
class Rows(ABC):
    """Feature rows of some tasks, and their products with a few vectors.

    Products and weights have one of two layouts: (tasks, n, ways), or (tasks, ways, n) in the
    functions "by class".
    """

    rows: Tensor  # (tasks, n, dim), raw, float32 or float64

    @property
    def n(self) -> int:
        """Number of rows of a task."""
        return self.rows.shape[-2]

    @property
    def dtype(self) -> torch.dtype:
        """Floating type of the rows and of what is computed from them."""
        return self.rows.dtype

    @abstractmethod
    def products_by_class(self, directions: Tensor) -> Tensor:
        """Product of every direction (tasks, ways, dim) with every row, (tasks, ways, n)."""

    @abstractmethod
    def weighted_sum_by_class(self, weights: Tensor) -> Tensor:
        """Sum of the rows under each row of weights (tasks, ways, n), as (tasks, ways, dim)."""

    def products(self, directions: Tensor) -> Tensor:
        """Product of every row with every direction (tasks, ways, dim), as (tasks, n, ways)."""
        return self.products_by_class(directions).mT

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Sum of the rows under each column of weights (tasks, n, ways), as (tasks, ways, dim)."""
        return self.weighted_sum_by_class(weights.mT)

    def mean(self) -> Tensor:
        """Mean of the rows, (tasks, dim)."""
        return self.weighted_sum_by_class(self.rows.new_full((1, 1, self.n), 1 / self.n)).squeeze(1)


@dataclass(frozen=True, eq=False)
class RawRows(Rows):
    """Rows that are not normalized."""

    @classmethod
    def of(cls, features: Tensor | Rows) -> RawRows:
        """The rows of features (tasks, n, dim), without any normalization or shift."""
        if isinstance(features, UnitRows) and features.shift is not None:
            raise ValueError("these rows are shifted; take the original ones")
        rows = features.rows if isinstance(features, Rows) else features
        return cls(rows.to(_at_least_float32(rows.dtype)))

    def with_squares(self) -> RawRows:
        """The same rows; DataError if their squares are out of range, as those of 1e20."""
        limits = torch.finfo(self.dtype)
        largest = float(self.rows.abs().max()) if self.rows.numel() else 0.0
        if largest and not limits.tiny**0.5 * 1e4 < largest < limits.max**0.5 / 1e4:
            raise DataError(
                f"the largest feature is {largest:.1g}, and this method takes features without "
                f"normalization, so that their squares are out of the range of {self.dtype}; "
                "scale them, or take a method that normalizes."
            )
        return self

    def products_by_class(self, directions: Tensor) -> Tensor:
        """As in `Rows`."""
        # Directions times rows, which is faster than rows times directions: they are few.
        return directions @ self.rows.mT

    def weighted_sum_by_class(self, weights: Tensor) -> Tensor:
        """As in `Rows`."""
        return weights @ self.rows


@dataclass(frozen=True, eq=False)
class UnitRows(Rows):
    """Rows of norm one, or zero where the raw row is zero: scale * rows + gain * shift."""

    scale: Tensor  # (tasks, n), factor of each row; 0 for a zero row
    shift: Tensor | None = None  # (tasks, 1, dim), added to every row
    gain: Tensor | None = None  # (tasks, n), factor of the shift at each row

    @classmethod
    def of(cls, features: Tensor | UnitRows) -> UnitRows:
        """Normalized rows of features (tasks, n, dim)."""
        if isinstance(features, UnitRows):
            return features
        rows = features.to(_at_least_float32(features.dtype))
        return cls(rows, inverse(row_norms(rows)))

    def subsample(self, rows: slice) -> UnitRows:
        """The same of some rows, which are copied."""
        gain = None if self.gain is None else self.gain[:, rows]
        return UnitRows(self.rows[:, rows].contiguous(), self.scale[:, rows], self.shift, gain)

    def shifted(self, shift: Tensor) -> UnitRows:
        """The same rows with shift (tasks, dim) added, renormalized."""
        shift = shift.unsqueeze(-2)  # (tasks, 1, dim)
        return self._renormalized(shift, self._products(shift).squeeze(-2))

    def shifted_cosines(self, shift: Tensor, directions: Tensor) -> tuple[UnitRows, Tensor]:
        """`shifted(shift)` and its `cosines(directions)`, in one pass over the rows."""
        shift = shift.unsqueeze(-2)
        products = self._products(torch.cat([directions, shift], dim=-2))  # (tasks, ways + 1, n)
        shifted = self._renormalized(shift, products[..., -1, :])
        products = products[..., :-1, :].add_(directions @ shift.mT).mul_(shifted._gain())
        return shifted, products.mul_(_inverse_norms(directions)).mT

    def products_by_class(self, directions: Tensor) -> Tensor:
        """As in `Rows`."""
        products = self._products(directions)
        if self.shift is not None:
            products.addcmul_(directions @ self.shift.mT, self._gain())
        return products

    def cosines(self, directions: Tensor) -> Tensor:
        """Cosine of every row with every direction (tasks, ways, dim), as (tasks, n, ways)."""
        return self.products(directions).mul_(_inverse_norms(directions).mT)

    def cosines_with(self, others: UnitRows) -> Tensor:
        """Cosine of every row with every row of `others`."""
        # Materialized: the product of two raw rows may be out of range, as that of 1e20 and 1e20.
        return self.products(others.materialize())

    def weighted_sum_by_class(self, weights: Tensor) -> Tensor:
        """As in `Rows`."""
        total = (weights * self.scale.unsqueeze(-2)) @ self.rows
        if self.shift is not None:
            total.addcmul_(weights @ self._gain().mT, self.shift)
        return total

    def weighted_sum_at(self, positions: Tensor, weights: Tensor) -> Tensor:
        """Sum of the rows at positions (tasks, k, ways) under weights of that shape.

        Equals `weighted_sum` with zero weights everywhere else, but reads only these rows.
        """
        tasks, _, ways = positions.shape
        n, dim = self.rows.shape[-2:]
        first_of_task = n * torch.arange(tasks, device=positions.device)
        flat = (positions.mT + first_of_task.view(-1, 1, 1)).flatten(0, 1)  # (tasks x ways, k)
        weights = weights.mT.flatten(0, 1)
        total = torch.nn.functional.embedding_bag(
            flat,
            self.rows.flatten(0, 1),
            per_sample_weights=weights * self.scale.flatten()[flat],
            mode="sum",
        ).view(tasks, ways, dim)
        if self.shift is not None:
            shift_weights = (weights * self._gain().flatten()[flat]).sum(dim=-1)
            total.addcmul_(shift_weights.view(tasks, ways, 1), self.shift)
        return total

    def materialize(self) -> Tensor:
        """The unit rows as one tensor (tasks, n, dim)."""
        rows = self.rows * self.scale.unsqueeze(-1)
        return rows if self.shift is None else rows + self._gain().mT * self.shift

    def _products(self, directions: Tensor) -> Tensor:
        """Products with the rows before the shift, (tasks, ways, n)."""
        return (directions @ self.rows.mT).mul_(self.scale.unsqueeze(-2))

    def _gain(self) -> Tensor:
        assert self.gain is not None
        return self.gain.unsqueeze(-2)  # (tasks, 1, n)

    def _renormalized(self, shift: Tensor, along: Tensor) -> UnitRows:
        if self.shift is not None:
            raise ValueError("these rows are shifted already; shift the original ones")
        shift_square = shift.square().sum(dim=-1)  # (tasks, 1)
        # |x + shift|^2 with |x|^2 = 1, or 0 for a zero row
        square = (self.scale > 0) + 2 * along + shift_square  # (tasks, n)
        # A rounding error where the sum is zero must not be scaled up to norm one.
        rounding = 16 * torch.finfo(square.dtype).eps * (1 + shift_square)
        gain = torch.where(square > rounding, square.rsqrt(), 0.0)
        return UnitRows(self.rows, self.scale * gain, shift, gain)


def inverse(norms: Tensor) -> Tensor:
    """One over each norm; 0 where that is not finite, so that a zero vector stays zero."""
    return torch.where(norms >= torch.finfo(norms.dtype).tiny, norms.reciprocal(), 0.0)


def _inverse_norms(directions: Tensor) -> Tensor:
    """One over the norm of each direction, (tasks, ways, 1), finite for a zero one."""
    norms: Tensor = torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    return norms.clamp_min_(torch.finfo(norms.dtype).tiny).reciprocal_()


def _at_least_float32(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)
