"""Rules for new samples: what a method keeps of its tasks, and those rules that several share.

A rule is a frozen dataclass of tensors and plain numbers. So it can be pickled, copied, and saved
by its fields (`state`, `restore`); it holds none of the unlabeled samples.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, ClassVar, Self, get_origin, get_type_hints

import torch
from torch import Tensor

from protorect.core.functional import Features
from protorect.core.unit_rows import RawRows, Rows, UnitRows
from protorect.errors import DataError

Number = float | int | bool
_BLOCK_BYTES = 64 * 2**20  # of transformed samples at once


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """Scores of new samples, each on its own.

    A tensor is annotated with the names of its axes, the first of which is "tasks"; axes of the
    same name have the same size. Every other field is a number or a flag.
    """

    _kinds: ClassVar[dict[str, type["Rule"]]] = {}

    def __init_subclass__(cls) -> None:
        Rule._kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        sizes = self.sizes
        for name, tensor in self._tensors().items():
            expected = tuple(sizes[axis] for axis in self._axes()[name])
            if tuple(tensor.shape) != expected:
                raise ValueError(f"{name} has shape {tuple(tensor.shape)} instead of {expected}")
            # Rounding depends on the memory layout, and tensors read from a file are contiguous.
            object.__setattr__(self, name, tensor.contiguous())

    @abstractmethod
    def _score(self, samples: Features) -> Tensor:
        """`scores` for samples of the floating type of the tensors."""

    def scores(self, samples: Features) -> Tensor:
        """Score samples (tasks, n, dim), as (tasks, n, ways), higher is better.

        What is computed is in the wider of the floating types of the samples and of the rule.
        """
        given = samples.rows if isinstance(samples, Rows) else samples
        sizes = self.sizes
        if given.ndim != 3 or (len(given), given.shape[-1]) != (sizes["tasks"], sizes["dim"]):
            expected = f"({sizes['tasks']}, n, {sizes['dim']})"
            raise DataError(f"samples of shape {tuple(given.shape)} were given, not {expected}.")
        own = next(t.dtype for t in self._tensors().values() if t.is_floating_point())
        dtype = torch.promote_types(torch.promote_types(given.dtype, torch.float32), own)
        if dtype == own:
            same_type = given.dtype == dtype
            return self._score(samples if same_type else RawRows.of(samples).rows.to(dtype))
        wider = self._with_tensors(lambda t: t.to(dtype) if t.is_floating_point() else t)
        return wider._score(samples)

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each axis by its name: "tasks", "ways", "dim" and others."""
        own_axes, sizes = self._axes(), dict[str, int]()
        for name, tensor in self._tensors().items():
            for axis, size in zip(own_axes[name], tensor.shape, strict=False):
                sizes.setdefault(axis, size)
        return sizes

    def part(self, tasks: slice) -> Self:
        """The rule of some of the tasks."""
        return self._with_tensors(lambda tensor: tensor[tasks])

    @classmethod
    def concatenate(cls, rules: Sequence[Self]) -> Self:
        """One rule of the tasks of several, which differ in nothing else."""
        tensors = [rule._tensors() for rule in rules]
        together = {name: torch.cat([one[name] for one in tensors]) for name in tensors[0]}
        return replace(rules[0], **together)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Number]]:
        """The tensors and the numbers by name, from which `restore` makes the same rule."""
        names = [one.name for one in fields(self) if one.name not in self._axes()]
        return self._tensors(), {name: getattr(self, name) for name in names}

    @staticmethod
    def restore(name: str, tensors: Mapping[str, Tensor], numbers: Mapping[str, Number]) -> "Rule":
        """The rule of class `name` with this `state`; DataError if they do not belong together."""
        try:
            kind = Rule._kinds[name]
            if not set(tensors) <= set(kind._axes()) or set(numbers) & set(kind._axes()):
                raise ValueError(f"tensors {sorted(tensors)}, numbers {sorted(numbers)}")
            for field in (*tensors.values(), *numbers.values()):
                if (
                    not isinstance(field, Number | Tensor)
                    or not torch.as_tensor(field).isfinite().all()
                ):
                    raise ValueError("not all are finite")
            numeric = {tensor.dtype for tensor in tensors.values()} - {torch.bool}
            if len(numeric) > 1 or not all(dtype.is_floating_point for dtype in numeric):
                raise ValueError("its tensors are not floating-point numbers of one kind")
            return kind(**tensors, **numbers)
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise DataError(f"no rule {name!r} with these fields: {error}.") from error

    @classmethod
    @cache
    def _axes(cls) -> dict[str, list[str]]:
        """Names of the axes of each tensor."""
        hints = get_type_hints(cls, include_extras=True)
        return {
            one.name: hints[one.name].__metadata__[0].split()
            for one in fields(cls)
            if get_origin(hints[one.name]) is Annotated
        }

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {name: getattr(self, name) for name in self._axes()}
        return {name: tensor for name, tensor in tensors.items() if tensor is not None}

    def _with_tensors(self, change: Callable[[Tensor], Tensor]) -> Self:
        return replace(self, **{name: change(t) for name, t in self._tensors().items()})


@dataclass(frozen=True, eq=False)
class CosineRule(Rule):
    """Cosine with the prototypes, of normalized samples that are shifted if there is a shift."""

    prototypes: Annotated[Tensor, "tasks ways dim"]
    shift: Annotated[Tensor | None, "tasks dim"] = None

    def _score(self, samples: Features) -> Tensor:
        rows = UnitRows.of(samples)
        if self.shift is None:
            return rows.cosines(self.prototypes)
        return rows.shifted_cosines(self.shift, self.prototypes)[1]


@dataclass(frozen=True, eq=False)
class DistanceRule(Rule):
    """Minus the squared distance to the prototypes times `scale`, up to a constant per sample.

    First `center` is subtracted if there is one, and the samples are normalized if `normalize`.
    """

    prototypes: Annotated[Tensor, "tasks ways dim"]
    center: Annotated[Tensor | None, "tasks dim"] = None
    normalize: bool = True
    scale: float = 1.0

    def _score(self, samples: Features) -> Tensor:
        if self.center is None:
            rows = UnitRows.of(samples) if self.normalize else RawRows.of(samples)
            return self._score_rows(rows)
        center = self.center.unsqueeze(-2)
        return in_blocks(
            lambda block: self._score_rows(UnitRows.of(block - center)), RawRows.of(samples).rows
        )

    def _score_rows(self, rows: Rows) -> Tensor:
        scores = distance_scores_by_class(rows, self.prototypes)
        return (scores if self.scale == 1 else scores.mul_(self.scale)).mT


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """Products of the normalized samples with the weights, plus a bias for each class."""

    weights: Annotated[Tensor, "tasks ways dim"]
    bias: Annotated[Tensor, "tasks ways"]

    def _score(self, samples: Features) -> Tensor:
        return UnitRows.of(samples).products(self.weights).add_(self.bias.unsqueeze(-2))


def distance_scores_by_class(rows: Rows, prototypes: Tensor) -> Tensor:
    """-|x_i - p_k|^2 up to the constant |x_i|^2, (tasks, ways, n); prototypes (tasks, ways, dim).

    Neither the nearest class nor a softmax over the classes depends on the constant.
    """
    # -|x - p|^2 + |x - c|^2 = 2 x.(p - c) - (p + c).(p - c) for any c. With c the mean prototype, a
    # mean that all features share is not squared, whose rounding would hide the differences.
    center = prototypes.mean(dim=-2, keepdim=True)
    directions = prototypes - center
    offsets = (directions * (prototypes + center)).sum(dim=-1)  # (tasks, ways)
    return rows.products_by_class(directions).mul_(2).sub_(offsets.unsqueeze(-1))


def assigned_means(support: Rows, members: Tensor, unlabeled: Rows, p: Tensor) -> Tensor:
    """Means (tasks, ways, dim) of the support and of the unlabeled samples assigned to a class.

    `members` (tasks, ways, n_support) are 1 or 0, assignments p (tasks, ways, n) in 0 .. 1.
    """
    total = support.weighted_sum_by_class(members) + unlabeled.weighted_sum_by_class(p)
    return total / (members.sum(dim=-1, keepdim=True) + p.sum(dim=-1, keepdim=True))


def in_blocks(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """`function` of rows (tasks, n, dim), of a bounded number at once: it makes a copy of them."""
    size = max(1, _BLOCK_BYTES // max(1, len(rows) * rows.shape[-1] * rows.element_size()))
    parts = [function(block) for block in torch.split(rows, size, dim=-2)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)
