"""What the demonstration measures on the novel digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

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
from protorect.demo.learning import SIZE, Learned
from protorect.demo.plan import QUERY, SHOTS, WAY, Plan
from protorect.evaluation.evaluate import Result, evaluate

ABLATION = ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-cspn-classes")
Z = tuple(range(16))
SHOWN = ("cspn", "bd-cspn")  # the methods whose answers to one episode are drawn
READINGS: tuple[Weighting, ...] = get_args(Weighting)


class ShownEpisode(NamedTuple):
    """One 1-shot episode in pictures, and the class positions each method gave its queries."""

    number: int  # from 0
    names: tuple[str, ...]  # (way,), of its classes
    support: NDArray[np.uint8]  # (way, size, size)
    query: NDArray[np.uint8]  # (way, queries, size, size), of each class
    predicted: Mapping[str, NDArray[np.int32]]  # each (way, queries)


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration measured.

    Parameters
    ----------
    plan, learned
        What was to be done, and the training.
    ablation, of_pixels
        Results of the methods `ABLATION` for each of `SHOTS`, on the features of the trained
        network and on the pixels of the same pictures.
    curves
        For each reading of the weights and each shot, results of bd-i for each of `Z`.
    moments, eta
        What eq. (25) is told of the features and of CSPN's accuracies.
    expected
        For each shot, (len(Z),), the accuracy of eq. (25).
    shown
        An episode in pictures.
    """

    plan: Plan
    learned: Learned
    ablation: list[Result]
    of_pixels: list[Result]
    curves: Mapping[Weighting, Mapping[int, list[Result]]]
    moments: ClassMoments
    eta: float
    expected: Mapping[int, NDArray[np.float64]]
    shown: ShownEpisode

    @property
    def episodes(self) -> int:
        """How many episodes were drawn."""
        return len(self.plan.episodes)

    def of(self, method: str, shot: int) -> Result:
        """The result of one method of the ablation, on the features of the network."""
        return _one(self.ablation, method, shot)

    def pixels_of(self, method: str, shot: int) -> Result:
        """The same on pixels."""
        return _one(self.of_pixels, method, shot)


def measure(plan: Plan, learned: Learned, progress: Progress | None = None) -> DemoResult:
    """Measure the ablation and the accuracy against Z, all on the episodes of the plan.

    Parameters
    ----------
    plan
        Whose episodes to use.
    learned
        By the recipe of the plan.
    progress
        Called with the episodes done and to do.
    """
    curves = {(reading, z): f"bd-i:z={z},weighting={reading}" for reading in READINGS for z in Z}
    methods = [*ABLATION, *curves.values()]
    of_pixels, results = (
        evaluate(
            features,
            learned.labels,
            chosen,
            shot=SHOTS,
            episodes=plan.episodes,
            progress=_half(progress, half),
        )
        for half, (features, chosen) in enumerate(
            [(learned.pixels, ABLATION), (learned.features, methods)]
        )
    )
    found = {(result.method, result.shot): result for result in results}
    moments = class_moments(learned.features, learned.labels)
    eta = accuracy_coefficient(moments, {k: found["cspn", k].accuracy for k in SHOTS})
    return DemoResult(
        plan=plan,
        learned=learned,
        ablation=[found[name, shot] for shot in SHOTS for name in ABLATION],
        of_pixels=of_pixels,
        curves={
            reading: {k: [found[curves[reading, z], k] for z in Z] for k in SHOTS}
            for reading in READINGS
        },
        moments=moments,
        eta=eta,
        expected={k: expected_accuracy(moments, eta, k, Z) for k in SHOTS},
        shown=_typical(plan, learned, [found[name, 1] for name in SHOWN]),
    )


def _half(progress: Progress | None, half: int) -> Progress | None:
    """Tell the progress of the first (0) or second (1) of two equal pieces of work."""
    if progress is None:
        return None
    return lambda done, total: progress(half * total + done, 2 * total)


def _typical(plan: Plan, learned: Learned, results: Sequence[Result]) -> ShownEpisode:
    """The episode on which the accuracies of the methods are nearest to their means."""
    away = sum(np.square(result.per_episode - result.accuracy) for result in results)
    number = int(np.argmin(away))
    support = plan.episodes.support[number, :, 0]
    query = plan.episodes.query[number].reshape(WAY, QUERY)  # queries come class after class
    return ShownEpisode(
        number=number,
        names=tuple(str(label) for label in learned.labels[support]),
        support=learned.pictures[support].reshape(WAY, SIZE, SIZE),
        query=learned.pictures[query].reshape(WAY, QUERY, SIZE, SIZE),
        predicted={r.method: r.predictions[number].reshape(WAY, QUERY) for r in results},
    )


def _one(results: Sequence[Result], method: str, shot: int) -> Result:
    return next(r for r in results if (r.method, r.shot) == (method, shot))
