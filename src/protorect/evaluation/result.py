"""The result of a method on a set of episodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.core.statistics import Estimate, mean_interval, paired_difference
from protorect.evaluation.episodes import DISTRACTOR, Episodes


@dataclass(frozen=True, eq=False)
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
    chosen
        Options that were chosen on validation classes, as in {"z": 8}; `method` does not list them.

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
    chosen: Mapping[str, Any] = field(default_factory=dict)

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
