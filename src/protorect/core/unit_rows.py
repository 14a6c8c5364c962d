"""Feature rows of length one that are never written out.

The method works on normalised features, then on normalised features that were shifted and
normalised again. Writing those out costs a pass over memory and a second copy of the pile.
`UnitRows` keeps the rows as they came together with the few numbers that make them unit rows:

    x_i = scale_i * rows_i + gain_i * shift

Everything the paper asks of such rows is a product with a few vectors, and products carry the
factors through.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def row_norms(rows: Tensor) -> Tensor:
    """Length of each row, (..., n, dim) -> (..., n), also where its squares are out of range."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1, dtype=_at_least_float32(rows.dtype))
    # The squares of a row beyond these lengths leave the range of float32.
    strained = ~((norms > 1e-15) & (norms < 1e15))
    if strained.any():
        largest = rows[strained].abs().amax(dim=-1, keepdim=True).to(norms.dtype)
        parts = torch.where(largest > 0, rows[strained] / largest, 0.0)
        norms[strained] = torch.linalg.vector_norm(parts, dim=-1) * largest.squeeze(-1)
    return norms


@dataclass(frozen=True)
class UnitRows:
    """Rows of length one (or zero, where the row was zero), kept as factors.

    Parameters
    ----------
    rows
        (tasks, n, dim), as they came, float32 or float64.
    scale
        (tasks, n), what each row is multiplied by; 0 for a zero row.
    shift
        (tasks, 1, dim), added to every row; None where nothing is added.
    gain
        (tasks, n), what the shift is multiplied by at each row; None where nothing is added.
    """

    rows: Tensor
    scale: Tensor
    shift: Tensor | None = None
    gain: Tensor | None = None

    @classmethod
    def of(cls, rows: Tensor | UnitRows) -> UnitRows:
        """Unit rows from feature rows (tasks, n, dim) of any length."""
        if isinstance(rows, UnitRows):
            return rows
        rows = rows.to(_at_least_float32(rows.dtype))
        return cls(rows, inverse(row_norms(rows)))

    @classmethod
    def as_they_came(cls, rows: Tensor | UnitRows) -> UnitRows:
        """The feature rows at their own length, for what does not normalise: all factors are 1."""
        if isinstance(rows, UnitRows):
            rows = rows.rows
        rows = rows.to(_at_least_float32(rows.dtype))
        return cls(rows, rows.new_ones(rows.shape[:-1]))

    def shifted(self, shift: Tensor) -> UnitRows:
        """The same rows with shift (tasks, dim) added, brought back to length one."""
        shift = shift.unsqueeze(-2)  # (tasks, 1, dim)
        return self._brought_back(shift, self._products(shift).squeeze(-2))

    def shifted_cosines(self, shift: Tensor, directions: Tensor) -> tuple[UnitRows, Tensor]:
        """`shifted(shift)` and its `cosines(directions)`, in one pass over the rows."""
        shift = shift.unsqueeze(-2)
        products = self._products(torch.cat([directions, shift], dim=-2))  # (tasks, ways + 1, n)
        shifted = self._brought_back(shift, products[..., -1, :])
        products = products[..., :-1, :].add_(directions @ shift.mT).mul_(shifted._gain())
        return shifted, products.mul_(_inverse_lengths(directions)).mT

    def mean(self) -> Tensor:
        """Mean of the rows, (tasks, dim)."""
        n = self.scale.shape[-1]
        return self.weighted_sum(self.scale.new_full((1, n, 1), 1 / n)).squeeze(-2)

    def products(self, directions: Tensor) -> Tensor:
        """Product of every row with every direction (tasks, ways, dim), as (tasks, n, ways)."""
        products = self._products(directions)
        if self.shift is not None:
            products.addcmul_(directions @ self.shift.mT, self._gain())
        return products.mT

    def cosines(self, directions: Tensor) -> Tensor:
        """Cosine of every row with every direction (tasks, ways, dim), as (tasks, n, ways)."""
        return self.products(directions).mul_(_inverse_lengths(directions).mT)

    def cosines_with(self, others: UnitRows) -> Tensor:
        """Cosine of every row with every row of `others`, which were not shifted."""
        return self.products(others.rows).mul_(others.scale.unsqueeze(-2))

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Sum of the rows under each column of weights (tasks, n, ways), as (tasks, ways, dim)."""
        by_way = weights.mT
        total = (by_way * self.scale.unsqueeze(-2)) @ self.rows
        if self.shift is not None:
            total.addcmul_(by_way @ self._gain().mT, self.shift)
        return total

    def weighted_sum_at(self, places: Tensor, weights: Tensor) -> Tensor:
        """Sum of the rows at places (tasks, k, ways) under weights of that shape.

        What `weighted_sum` gives with zero weights everywhere else, but only these rows are read.
        """
        tasks, _, ways = places.shape
        n, dim = self.rows.shape[-2:]
        first_of_task = n * torch.arange(tasks, device=places.device)
        flat = (places.mT + first_of_task.view(-1, 1, 1)).flatten(0, 1)  # (tasks x ways, k)
        weights = weights.mT.flatten(0, 1)
        total = torch.nn.functional.embedding_bag(
            flat,
            self.rows.flatten(0, 1),
            per_sample_weights=weights * self.scale.flatten()[flat],
            mode="sum",
        ).view(tasks, ways, dim)
        if self.shift is not None:
            shares = (weights * self._gain().flatten()[flat]).sum(dim=-1)
            total.addcmul_(shares.view(tasks, ways, 1), self.shift)
        return total

    def materialise(self) -> Tensor:
        """The unit rows written out, (tasks, n, dim)."""
        written = self.rows * self.scale.unsqueeze(-1)
        if self.shift is not None:
            written = written + self._gain().mT * self.shift
        return written

    def _products(self, directions: Tensor) -> Tensor:
        # Directions times rows, not rows times directions: a few long rows make the faster product.
        return (directions @ self.rows.mT).mul_(self.scale.unsqueeze(-2))  # (tasks, ways, n)

    def _gain(self) -> Tensor:
        assert self.gain is not None
        return self.gain.unsqueeze(-2)  # (tasks, 1, n)

    def _brought_back(self, shift: Tensor, along: Tensor) -> UnitRows:
        if self.shift is not None:
            raise ValueError("these rows were shifted already; shift the original ones")
        shift_square = shift.square().sum(dim=-1)  # (tasks, 1)
        # |x + shift|^2 with |x|^2 = 1, or 0 for a zero row
        square = (self.scale > 0) + 2 * along + shift_square  # (tasks, n)
        # What rounding leaves of a difference that is zero must not be blown up to length one.
        rounding = 16 * torch.finfo(square.dtype).eps * (1 + shift_square)
        gain = torch.where(square > rounding, square.rsqrt(), 0.0)
        return UnitRows(self.rows, self.scale * gain, shift, gain)


def inverse(lengths: Tensor) -> Tensor:
    """One over each length; 0 where that has no finite value, so that a zero vector stays zero."""
    smallest = torch.finfo(lengths.dtype).tiny
    return torch.where(lengths >= smallest, lengths.reciprocal(), 0.0)


def _inverse_lengths(directions: Tensor) -> Tensor:
    """One over the length of each direction, (tasks, ways, 1), finite for a zero one."""
    lengths: Tensor = torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    return lengths.clamp_min_(torch.finfo(lengths.dtype).tiny).reciprocal_()


def _at_least_float32(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)
