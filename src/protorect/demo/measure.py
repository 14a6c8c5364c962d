"""What the demonstration measures, on scikit-learn's 1797 digits of 8 x 8 grey values.

The digits come with the package; the features are the grey values themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from protorect.episodes import Episodes, sample_episodes
from protorect.evaluation import Progress, Result, evaluate
from protorect.functional import Weighting
from protorect.theory import ClassMoments, accuracy_coefficient, class_moments, expected_accuracy

WAY, QUERY, SHOTS = 5, 15, (1, 5)
ABLATION = ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-cspn-classes")
Z = tuple(range(16))
SHOWN = ("cspn", "bd-cspn")  # the methods whose answers to one episode are drawn
READINGS: tuple[Weighting, ...] = get_args(Weighting)


class ShownEpisode(NamedTuple):
    """One 1-shot episode in pictures, and the class positions each method gave its queries."""

    number: int  # from 0
    names: tuple[str, ...]  # (way,), of its classes
    support: NDArray[np.float64]  # (way, 8, 8)
    query: NDArray[np.float64]  # (way, queries, 8, 8), of each class
    predicted: Mapping[str, NDArray[np.int32]]  # each (way, queries)


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration measured.

    Parameters
    ----------
    seed
        Of the episodes.
    ablation
        Results of the methods `ABLATION` for each of `SHOTS`.
    curves
        For each reading of the weights and each shot, results of bd-i for each of `Z`.
    moments, eta
        What eq. (25) is told of the features and of CSPN's accuracies.
    expected
        For each shot, (len(Z),), the accuracy of eq. (25).
    shown
        An episode in pictures.
    """

    seed: int
    ablation: list[Result]
    curves: Mapping[Weighting, Mapping[int, list[Result]]]
    moments: ClassMoments
    eta: float
    expected: Mapping[int, NDArray[np.float64]]
    shown: ShownEpisode

    @property
    def episodes(self) -> int:
        """How many episodes were drawn."""
        return self.ablation[0].episodes

    def of(self, method: str, shot: int) -> Result:
        """The result of one method of the ablation."""
        return next(r for r in self.ablation if (r.method, r.shot) == (method, shot))


def run_demo(episodes: int = 600, seed: int = 0, progress: Progress | None = None) -> DemoResult:
    """Measure the ablation and the accuracy against Z on the same episodes.

    Parameters
    ----------
    episodes
        How many.
    seed
        Of the episodes.
    progress
        Called with the episodes done and to do.
    """
    pixels, labels = load_digits(return_X_y=True)
    drawn = sample_episodes(
        labels, way=WAY, shot=max(SHOTS), query=QUERY, episodes=episodes, seed=seed
    )
    curves = {(reading, z): f"bd-i:z={z},weighting={reading}" for reading in READINGS for z in Z}
    methods = [*ABLATION, *curves.values()]
    results = evaluate(pixels, labels, methods, shot=SHOTS, episodes=drawn, progress=progress)
    found = {(result.method, result.shot): result for result in results}
    moments = class_moments(pixels, labels)
    eta = accuracy_coefficient(moments, {k: found["cspn", k].accuracy for k in SHOTS})
    return DemoResult(
        seed=seed,
        ablation=[found[name, shot] for shot in SHOTS for name in ABLATION],
        curves={
            reading: {k: [found[curves[reading, z], k] for z in Z] for k in SHOTS}
            for reading in READINGS
        },
        moments=moments,
        eta=eta,
        expected={k: expected_accuracy(moments, eta, k, Z) for k in SHOTS},
        shown=_typical(pixels, labels, drawn, [found[name, 1] for name in SHOWN]),
    )


def _typical(
    pixels: NDArray[np.float64], labels: NDArray[Any], drawn: Episodes, results: Sequence[Result]
) -> ShownEpisode:
    """The episode on which the accuracies of the methods are nearest to their means."""
    away = sum(np.square(result.per_episode - result.accuracy) for result in results)
    number = int(np.argmin(away))
    support = drawn.support[number, :, 0]
    query = drawn.query[number].reshape(WAY, QUERY)  # queries come class after class
    return ShownEpisode(
        number=number,
        names=tuple(str(label) for label in labels[support]),
        support=pixels[support].reshape(WAY, 8, 8),
        query=pixels[query].reshape(WAY, QUERY, 8, 8),
        predicted={r.method: r.predictions[number].reshape(WAY, QUERY) for r in results},
    )
