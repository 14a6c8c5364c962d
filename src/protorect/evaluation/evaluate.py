"""Accuracy of methods on episodes of a feature table, with confidence intervals."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from protorect._utils.parameters import check_whole
from protorect._utils.progress import Progress, part_of
from protorect.core.functional import predictions
from protorect.core.statistics import Estimate, mean_interval, paired_difference
from protorect.errors import OptionError
from protorect.evaluation.episodes import DISTRACTOR, Episodes, sample_episodes
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.tasks import task_batches
from protorect.methods import Method, chosen_methods


@dataclass(frozen=True)
class Result:
    """Accuracy of one method on a set of episodes.

    Parameters
    ----------
    method
        Its name, options included.
    way, shot, query
        Classes per episode, support samples per class, queries per class on average.
    accuracy, ci95
        Mean over the episodes in percent, and the half-width of its 95 % confidence interval.
    seconds
        Time of the method on all episodes, without reading the features.
    per_episode
        (episodes,), accuracy in percent.
    predictions
        (episodes, n_query), the class position 0 .. way - 1 predicted for each query.

    Examples
    --------
    >>> import numpy as np, protorect
    >>> labels = np.arange(100) % 5
    >>> (result,) = protorect.evaluate(np.eye(5)[labels], labels, "cspn", shot=1, episodes=10)
    >>> result.method, result.way, result.shot, result.accuracy, result.ci95
    ('cspn', 5, 1, 100.0, 0.0)
    """

    method: str
    way: int
    shot: int
    query: int
    accuracy: float
    ci95: float
    seconds: float
    per_episode: NDArray[np.float64] = field(repr=False)
    predictions: NDArray[np.int32] = field(repr=False)

    @classmethod
    def of(
        cls, method: str, episodes: Episodes, predicted: NDArray[np.int32], seconds: float
    ) -> "Result":
        """The result of predicted class positions (episodes, n_query)."""
        scored = episodes.query_way != DISTRACTOR
        right = (predicted == episodes.query_way).sum(axis=1)  # a distractor is never right
        accuracies = 100 * right / scored.sum(axis=1)
        return cls(
            method,
            episodes.way,
            episodes.shot,
            episodes.query_per_class,
            *mean_interval(accuracies),
            seconds=seconds,
            per_episode=accuracies,
            predictions=predicted,
        )

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.per_episode)

    def minus(self, other: "Result") -> Estimate:
        """Paired difference of the accuracies on the same episodes, with its interval."""
        return paired_difference(self.per_episode, other.per_episode)


def evaluate(
    features: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    methods: str | Method | Sequence[str | Method] = ("cspn", "bd-cspn"),
    *,
    way: int = 5,
    shot: int | Sequence[int] | None = None,
    query: int = 15,
    episodes: int | Episodes = 600,
    seed: int = 0,
    dirichlet: float | None = None,
    distractors: int = 0,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Run every method on the same episodes.

    Parameters
    ----------
    features
        (n, dim), numpy or torch, floating point of any width.
    labels
        (n,), numbers or strings.
    methods
        Names, with or without options: "bd-cspn", "bd-cspn:z=4,epsilon=20"; "all" for all.
    shot
        One or several, which share their classes and queries; 1 and 5 if not given, or the shot
        of given `Episodes`.
    way, query, seed, dirichlet, distractors
        See `sample_episodes`; not used with given `Episodes`.
    episodes
        Number of episodes to sample, or `Episodes` that were sampled from these labels.
    device
        Where to compute; by default where the features are.
    progress
        Called with the number of episodes done and the number of all.

    Returns
    -------
    list of Result
        Shot by shot, in the order of `methods`.

    Examples
    --------
    >>> import numpy as np, protorect
    >>> labels = np.arange(200) % 8
    >>> features = np.eye(8)[labels] + np.random.default_rng(0).normal(size=(200, 8)) / 20
    >>> results = protorect.evaluate(features, labels, ["cspn", "bd-cspn"], episodes=20)
    >>> [(result.method, result.shot, result.accuracy) for result in results]
    [('cspn', 1, 100.0), ('bd-cspn', 1, 100.0), ('cspn', 5, 100.0), ('bd-cspn', 5, 100.0)]
    """
    chosen = chosen_methods(methods)
    shots = _shots(shot, episodes)
    table = FeatureTable.of(features, labels, device)
    if isinstance(episodes, Episodes):
        episodes.check_labels(table.labels)
    else:
        episodes = sample_episodes(
            table.labels,
            way=way,
            shot=max(shots),
            query=query,
            episodes=episodes,
            seed=seed,
            dirichlet=dirichlet,
            distractors=distractors,
        )
    results: list[Result] = []
    for i, k in enumerate(shots):
        part = part_of(progress, i * len(episodes), len(shots) * len(episodes))
        results += _evaluate_shot(table, chosen, episodes.with_shot(k), part)
    return results


def _shots(shot: int | Sequence[int] | None, episodes: int | Episodes) -> list[int]:
    if shot is None:
        return [episodes.shot] if isinstance(episodes, Episodes) else [1, 5]
    shots: list[Any] = [shot] if isinstance(shot, Real) else list(cast("Sequence[int]", shot))
    for one in shots:
        check_whole("shot", one, 1)
    if not shots:
        raise OptionError("no shot given; give at least one.")
    return [int(one) for one in shots]


@torch.inference_mode()
def _evaluate_shot(
    table: FeatureTable, methods: list[Method], episodes: Episodes, progress: Progress
) -> list[Result]:
    """Results of all methods on episodes of one shape."""
    predicted = np.empty((len(methods), *episodes.query.shape), dtype=np.int32)
    seconds = np.zeros(len(methods))
    for part, support, labels, query in task_batches(table, episodes):
        for i, chosen in enumerate(methods):
            start = time.perf_counter()
            predicted[i, part] = predictions(chosen(support, labels, query)).cpu().numpy()
            seconds[i] += time.perf_counter() - start
        progress(part.stop, len(episodes))
    return [
        Result.of(chosen.name, episodes, predicted[i], float(seconds[i]))
        for i, chosen in enumerate(methods)
    ]
