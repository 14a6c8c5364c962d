"""What goes into a method and what comes out: `Task`, `Solution`, `Fitted`.

Scores, assignments and priors are (tasks, n, ways) here, in `Rule.scores` and in `core`. Solvers,
and the methods built on them, work class-first, (tasks, ways, n), because a softmax over the
classes is then about 20 times as fast. What is class-first in `core`, in the rules and here has
"by class" in its name. `Task` and `Solution` convert from one layout to the other.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from protorect._utils.tensors import check_has_values
from protorect.core.functional import Features, membership
from protorect.core.unit_rows import RawRows, Rows, UnitRows
from protorect.errors import DataError
from protorect.methods.rules import CosineRule, Rule, assigned_means

_EXCLUDED_LOGIT = -1e4  # of a class that a prior excludes: finite, and 0 after a softmax
_SMALLEST_SCALE = 1e-6  # that a prior is divided by


@dataclass(frozen=True, eq=False)
class Task:
    """A batch of tasks of the same shape, as a method sees them."""

    support: Features  # (tasks, n_support, dim)
    labels: Tensor  # (tasks, n_support) or (n_support,), integers 0 .. ways - 1, each present
    unlabeled: Features  # (tasks, n_unlabeled, dim), possibly without rows
    ways: int
    prior: Tensor | None = None  # (tasks, n_unlabeled, ways), logits; the highest of a sample is 0
    previous: Rule | None = None  # of an earlier fit of the same method, to start from
    needs_rule: bool = True  # False where only the unlabeled samples are to be scored

    @classmethod
    def of(
        cls,
        support: Features,
        labels: Tensor,
        unlabeled: Features | None,
        prior: Tensor | None = None,
        previous: "Fitted | None" = None,
        needs_rule: bool = True,
    ) -> Self:
        """The arguments of `Method.fit`, checked."""
        shape = _feature_shape("support", support)
        if unlabeled is None:
            unlabeled = _rows(support)[:, :0]
        unlabeled_shape = _feature_shape("unlabeled", unlabeled)
        if shape[::2] != unlabeled_shape[::2]:
            raise DataError(
                f"support {shape} and unlabeled samples {unlabeled_shape} do not fit together; "
                "both are (tasks, samples, dimensions)."
            )
        labels, ways = _checked_labels(labels, shape[:2])
        support = _checked_support(support, unlabeled)
        if prior is not None:
            prior = _checked_prior(prior, (*unlabeled_shape[:2], ways))
            prior = prior.to(RawRows.of(_rows(unlabeled)[:, :0]).dtype)
        if not isinstance(previous, Fitted | None):
            raise DataError(
                f"previous is of type {type(previous).__name__}; give what `fit` has returned."
            )
        start = None if previous is None else previous.rule
        return cls(support, labels, unlabeled, ways, prior, start, needs_rule)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of tasks, of classes and of dimensions."""
        return len(_rows(self.support)), self.ways, _rows(self.support).shape[-1]

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabeled samples of a task."""
        return _rows(self.unlabeled).shape[1]

    def unit_rows(self) -> tuple[UnitRows, UnitRows]:
        """Normalized support and unlabeled samples, not materialized."""
        return UnitRows.of(self.support), UnitRows.of(self.unlabeled)

    def raw_rows(self) -> tuple[RawRows, RawRows]:
        """Support and unlabeled samples without any normalization."""
        return RawRows.of(self.support), RawRows.of(self.unlabeled)

    def prior_scores(self, scale: float) -> Tensor | None:
        """The prior as scores whose softmax is taken after multiplication by `scale`."""
        return None if self.prior is None else self.prior / max(scale, _SMALLEST_SCALE)

    def members_by_class(self) -> Tensor:
        """1 where a support sample belongs to a class, else 0: (tasks, ways, n_support)."""
        rows = RawRows.of(_rows(self.support)).rows
        members = membership(self.labels, self.ways).mT.to(rows.dtype)
        return members.expand(len(rows), -1, -1)

    def prior_by_class(self, scale: float = 1.0) -> Tensor | None:
        """`prior_scores`, (tasks, ways, n_unlabeled)."""
        prior = self.prior_scores(scale)
        return None if prior is None else prior.mT


class Solution(NamedTuple):
    """What a method has found out about a batch of tasks."""

    scores: Tensor  # (tasks, n_unlabeled, ways) of the unlabeled samples
    rule: Callable[[], Rule]  # makes the rule for new samples; not called if the task needs none

    @classmethod
    def by_class(cls, scores: Tensor, rule: Callable[[], Rule]) -> Self:
        """A solution from scores (tasks, ways, n_unlabeled)."""
        return cls(scores.mT, rule)


class Fitted:
    """A method fitted to tasks: scores of their unlabeled samples, and a rule for new ones.

    Attributes
    ----------
    method
        The name of the method.
    rule
        Scores new samples. It holds tensors and numbers only, and none of the unlabeled samples.
    unlabeled_scores
        (tasks, n_unlabeled, ways), the scores of the unlabeled samples: the transductive answer.

    Examples
    --------
    >>> import torch, protorect
    >>> support, labels = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.tensor([0, 1])
    >>> unlabeled = torch.tensor([[[0.9, 0.1], [0.2, 0.8], [0.3, 0.9]]])
    >>> fitted = protorect.METHODS["bd-cspn"].fit(support, labels, unlabeled)
    >>> fitted.scores(unlabeled) is fitted.unlabeled_scores
    True
    >>> fitted.scores(torch.tensor([[[0.8, 0.3]]])).argmax(dim=-1).tolist()
    [[0]]
    """

    def __init__(self, method: str, task: Task, solution: Solution) -> None:
        self.method = method
        self.rule = solution.rule()
        self.unlabeled_scores = solution.scores
        # Only to recognize the samples: they may be many, and are not kept alive.
        self._unlabeled: weakref.ref[Any] | None = weakref.ref(task.unlabeled)

    def scores(self, samples: Features) -> Tensor:
        """Score samples (tasks, n, dim), as (tasks, n, ways), higher is better.

        The unlabeled samples of the fit, given as the same object, have the scores that the method
        found for all of them together; nothing is computed again. All others are scored by `rule`.
        """
        if self._unlabeled is not None and self._unlabeled() is samples:
            return self.unlabeled_scores
        return self.rule.scores(samples)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_unlabeled": None}  # a copy does not know the samples


def assignment_rule(task: Task, p: Tensor) -> CosineRule:
    """For methods without a rule of their own: cosines with the means of the assigned samples.

    p (tasks, n_unlabeled, ways) are the shares of the unlabeled samples in the classes, or a mask.
    """
    support, unlabeled = task.unit_rows()
    p = p.mT.to(unlabeled.dtype)
    return CosineRule(assigned_means(support, task.members_by_class(), unlabeled, p))


def with_prior(scores: Tensor, prior: Tensor | None) -> Tensor:
    """The scores plus the prior, if there is one."""
    return scores if prior is None else scores + prior


def _rows(features: Features) -> Tensor:
    return features.rows if isinstance(features, Rows) else features


def _check_tensor(name: str, given: Any) -> None:
    if not isinstance(given, Tensor):
        raise DataError(
            f"{name} is of type {type(given).__name__}; give a tensor, as torch.as_tensor makes it."
        )
    check_has_values(name, given)


def _feature_shape(name: str, features: Features) -> tuple[int, ...]:
    """The shape of features, (tasks, samples, dimensions)."""
    rows = _rows(features)
    _check_tensor(name, rows)
    shape = tuple(rows.shape)
    if len(shape) != 3:
        problem = "the axis of the tasks is missing" if len(shape) == 2 else "it needs three axes"
        raise DataError(
            f"{name} has shape {shape}: {problem}; give (tasks, samples, dimensions), for one task "
            "(1, samples, dimensions)."
        )
    return shape


def _checked_labels(labels: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, int]:
    """The labels as int64 and the number of classes, for a support of (tasks, n_support)."""
    _check_tensor("labels", labels)
    if tuple(labels.shape) not in (shape, shape[1:]):
        raise DataError(
            f"labels have shape {tuple(labels.shape)}; one label per support sample is {shape[1:]} "
            f"or, where they differ between the tasks, {shape}."
        )
    if not labels.numel():
        raise DataError("labels are empty; give at least one support sample per class.")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise DataError(f"labels are of type {labels.dtype}; give integers, as labels.long() does.")
    labels = labels.long()
    lowest, highest = (int(bound) for bound in labels.aminmax())
    # The number of classes is compared first: a huge label must not allocate its membership.
    if (
        lowest < 0
        or highest >= labels.shape[-1]
        or not membership(labels, highest + 1).any(dim=-2).all()
    ):
        raise DataError(
            f"labels are from {lowest} to {highest}; give the integers 0 .. classes - 1, each at "
            "least once in every task."
        )
    return labels, highest + 1


def _checked_support(support: Features, unlabeled: Features) -> Features:
    """The support in the floating type of the unlabeled samples; rows objects are as they are."""
    if not isinstance(support, Tensor):
        return support
    if isinstance(unlabeled, Tensor):
        support = support.to(torch.promote_types(unlabeled.dtype, torch.float32))
    if not support.isfinite().all():
        raise DataError(
            f"support has values that are not finite in {support.dtype}; leave such samples out."
        )
    return support


def _checked_prior(prior: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The prior with 0 as the highest logit of every sample."""
    _check_tensor("prior", prior)
    if tuple(prior.shape) != shape:
        raise DataError(f"prior has shape {tuple(prior.shape)}; one logit per class is {shape}.")
    prior = prior - prior.amax(dim=-1, keepdim=True) if prior.numel() else prior
    if prior.isnan().any():
        raise DataError(
            "prior has logits that are not numbers; give finite ones, or -inf to exclude a class."
        )
    return prior.clamp_min(_EXCLUDED_LOGIT)
