"""Accuracy of a method over the values of one option, with both weightings of eq. (6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from protorect._utils.progress import Progress
from protorect.core.functional import Weighting
from protorect.core.theory import (
    ClassMoments,
    accuracy_coefficient,
    class_moments,
    expected_accuracy,
)
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import Result, evaluate
from protorect.methods import method
from protorect.paper.published import SHOTS

WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)


class Sweep(NamedTuple):
    """Results by weighting and shot, one per value, and those of other methods by name and shot."""

    values: Sequence[float]
    results: dict[tuple[Weighting, int], list[Result]]
    others: dict[tuple[str, int], Result]


def sweep(
    features: NDArray[Any],
    labels: NDArray[Any],
    variants: tuple[str, str, Sequence[float]],
    others: Sequence[str],
    episodes: Episodes,
    progress: Progress | None = None,
) -> Sweep:
    """Evaluate variants of a method (name, option, values) and other methods on the same tasks."""
    name, option, values = variants
    methods = [method(other) for other in others]
    for weighting in WEIGHTINGS:
        changes = ({option: value, "weighting": weighting} for value in values)
        methods += [method(name).with_options(**change) for change in changes]
    results = iter(
        evaluate(features, labels, methods, shot=SHOTS, episodes=episodes, progress=progress)
    )  # shot by shot, in the order of the methods
    swept = Sweep(values, {}, {})
    for shot in SHOTS:
        swept.others.update({(other, shot): next(results) for other in others})
        for weighting in WEIGHTINGS:
            swept.results[weighting, shot] = [next(results) for _ in values]
    return swept


class Theory(NamedTuple):
    """What eq. (25) expects: its constants, and the accuracy by shot, one per Z."""

    moments: ClassMoments
    eta: float
    expected: dict[int, NDArray[np.float64]]


def theory(features: NDArray[Any], labels: NDArray[Any], over_z: Sweep) -> Theory:
    """Fit eq. (25) to the features and to CSPN's accuracies, for the values of Z of a sweep."""
    moments = class_moments(features, labels)
    eta = accuracy_coefficient(moments, {k: over_z.others["cspn", k].accuracy for k in SHOTS})
    expected = {k: expected_accuracy(moments, eta, k, over_z.values) for k in SHOTS}
    return Theory(moments, eta, expected)


def typical_episode(results: Sequence[Result]) -> int:
    """Number of the episode whose accuracies are nearest to their means."""
    return int(np.argmin(sum(np.square(one.per_episode - one.accuracy) for one in results)))
