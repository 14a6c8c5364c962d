"""Scores of the pictures after every act, and calibrated probabilities that follow.

This is the only place where a session uses a method. The answer depends on the labels and the
pictures alone, not on the order of earlier answers, so that a session that is opened again gives
the same one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect.core.unit_rows import evenly_spaced
from protorect.labeling.acts import SAID_UNKNOWN, LabelState
from protorect.labeling.picture_rows import PictureRows
from protorect.uncertainty.calibrated import UNCALIBRATED, Scored, fit_calibrated
from protorect.uncertainty.classify import method_for

FIT_TO = 4000  # unlabeled pictures, evenly spaced; the rule of the method scores the others
LARGEST_SUPPORT = 4000
CALIBRATED_ON = 1000  # examples, and as many other pictures
_MANY = 20_000  # rows whose out-of-distribution scores take longer than the rest
_ROWS_AT_ONCE = 1024  # whose similarities to others fit into the cache of a processor


@dataclass(frozen=True, eq=False)
class Answers:
    """Scores of all rows, and what turns them into probabilities."""

    ways: NDArray[np.int64]  # (ways,) numbers of the classes that have an embedded example
    scores: Tensor  # (n, ways); without columns where fewer than two classes have one
    temperature: float = UNCALIBRATED.temperature
    ood: NDArray[np.float32] | None = None  # (n,)
    calibrated: bool = False

    @classmethod
    def none(cls, n: int = 0) -> "Answers":
        """No answers: there are fewer than two classes with examples."""
        return cls(np.empty(0, np.int64), torch.empty(n, 0), calibrated=True)

    @property
    def was_calibrated(self) -> bool:
        """Whether the temperature is one of these or of earlier labels."""
        return self.calibrated or self.temperature != UNCALIBRATED.temperature

    @cached_property
    def best(self) -> NDArray[np.int64]:
        """Number of the most probable class of each row, (n,); -1 without answers."""
        if not len(self.ways):
            return np.full(len(self.scores), -1, np.int64)
        best: NDArray[np.int64] = self.ways[self.scores.argmax(dim=1).numpy()]
        return best

    @cached_property
    def probability(self) -> NDArray[np.float32]:
        """Probability of the most probable class, (n,)."""
        if not len(self.ways):
            return np.zeros(len(self.scores), np.float32)
        logits = self.scores / self.temperature
        logits -= logits.amax(dim=1, keepdim=True)
        return logits.exp_().sum(dim=1).reciprocal_().numpy()

    @cached_property
    def margin(self) -> NDArray[np.float32]:
        """Difference of the two highest probabilities, (n,)."""
        if not len(self.ways):
            return np.zeros(len(self.scores), np.float32)
        first, second = self.scores.topk(2, dim=1).values.T
        ratio: NDArray[np.float32] = ((second - first) / self.temperature).exp_().numpy()
        return self.probability * (1 - ratio)

    def top(self, places: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], Tensor]:
        """Numbers and probabilities of the most probable classes of some rows, (n, count)."""
        scores = self.scores[torch.from_numpy(places)]
        probabilities = torch.softmax(scores / self.temperature, dim=1)
        values, columns = probabilities.topk(min(count, len(self.ways)), dim=1)
        return self.ways[columns.numpy()], values


@dataclass(frozen=True, eq=False)
class LabelingTask:
    """The labeled and the unlabeled rows of one moment."""

    rows: Tensor  # (n, components)
    support: Tensor  # places of the examples among the rows
    labels: Tensor  # positions in `ways`
    ways: NDArray[np.int64]  # numbers of the classes
    unlabeled: Tensor  # places of those the method is fitted to
    unknown: Tensor  # positions of those a person marked as unknown
    method: str | None
    all_fitted: bool  # whether these are all unlabeled rows

    @classmethod
    def of(cls, pictures: PictureRows, state: LabelState, method: str | None) -> Self | None:
        """The task that the labels pose; None if fewer than two classes have an example."""
        label = state.label[pictures.ids]
        ways = np.unique(label[label >= 0]).astype(np.int64)
        if len(ways) < 2:
            return None
        support = _subsampled(label, state.accepted[pictures.ids], LARGEST_SUPPORT)
        # Pictures marked as unknown would mislead the method, those marked as unsure would not.
        free = np.flatnonzero((label < 0) & (label != SAID_UNKNOWN))
        chosen = method_for(method, len(free), len(ways))
        step = -(-len(free) // FIT_TO) if chosen.has_rule and len(free) else 1
        return cls(
            pictures.rows,
            torch.from_numpy(support),
            torch.from_numpy(np.searchsorted(ways, label[support]).astype(np.int64)),
            ways,
            torch.from_numpy(free[::step].copy()),
            torch.from_numpy(np.flatnonzero(label == SAID_UNKNOWN)),
            method,
            step == 1,
        )


@torch.inference_mode()
def rescore(task: LabelingTask, before: Answers) -> Answers:
    """Score all rows at once; the temperature and the OOD scores of `before` serve meanwhile."""
    chosen = method_for(task.method, len(task.unlabeled), len(task.ways))
    unlabeled = task.rows[task.unlabeled][None]
    fitted = chosen.fit(task.rows[task.support][None], task.labels, unlabeled)
    scores = fitted.rule.scores(task.rows[None])[0].contiguous()
    if task.all_fitted and len(task.unlabeled):
        scores[task.unlabeled] = fitted.unlabeled_scores[0]
    ood = before.ood if before.ood is not None and len(before.ood) == len(scores) else None
    return Answers(task.ways, scores, before.temperature, ood)


@torch.inference_mode()
def calibrate(task: LabelingTask, answers: Answers) -> Iterator[Answers]:
    """The same answers with calibrated probabilities, then with out-of-distribution scores, too.

    In large tasks a part of the examples, each held out once, and of the other pictures is
    enough: two parameters are estimated. In small ones both come at once.
    """
    chosen = method_for(task.method, len(task.unlabeled), len(task.ways))
    labels = task.labels.numpy()
    places = _subsampled(labels, np.zeros(len(labels), bool), CALIBRATED_ON)
    support = task.rows[task.support[places]]
    some = evenly_spaced(len(task.unlabeled), CALIBRATED_ON)
    unlabeled = task.rows[task.unlabeled[some]]
    unknown = task.rows[task.unknown]
    rule, _ = fit_calibrated(chosen, support, task.labels[places], unlabeled, unknown=unknown)
    answers = replace(answers, temperature=rule.calibration.temperature)
    if len(task.rows) > _MANY:
        yield answers
    parts = []
    for start in range(0, len(task.rows), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        parts.append(rule.ood_scores(Scored(task.rows[block], answers.scores[block])))
    yield replace(answers, ood=torch.cat(parts).float().numpy(), calibrated=True)


def _subsampled(
    label: NDArray[Any], accepted: NDArray[np.bool_], maximum: int
) -> NDArray[np.int64]:
    """Positions of the labels, about `maximum` at most: of each class those by hand come first."""
    labeled = np.flatnonzero(label >= 0)
    if len(labeled) <= maximum:
        return labeled
    ways = np.unique(label[labeled])
    per_class, chosen = max(10, maximum // len(ways)), []
    for way in ways:
        members = labeled[label[labeled] == way]
        if len(members) > per_class:
            by_hand, others = members[~accepted[members]], members[accepted[members]]
            by_hand = by_hand[evenly_spaced(len(by_hand), per_class)]
            remaining = per_class - len(by_hand)
            others = others[evenly_spaced(len(others), remaining)] if remaining else others[:0]
            members = np.concatenate([by_hand, others])
        chosen.append(members)
    return np.sort(np.concatenate(chosen))
