"""The measurements of the demonstration on the novel digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protorect._utils.progress import Progress, part_of
from protorect.demo.learning import SIZE, Learned
from protorect.demo.plan import QUERY, WAY, Plan
from protorect.evaluation.evaluate import Result, evaluate
from protorect.paper.published import SHOTS
from protorect.paper.sweep import Sweep, Theory, sweep, theory, typical_episode

ABLATION = ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-cspn-classes")
Z = tuple(range(16))
SHOWN = ("cspn", "bd-cspn")  # the methods whose predictions in one episode are shown


class ShownEpisode(NamedTuple):
    """One 1-shot episode in pictures, and the class positions each method predicted."""

    number: int  # from 0
    names: tuple[str, ...]  # (way,), of its classes
    support: NDArray[np.uint8]  # (way, size, size)
    query: NDArray[np.uint8]  # (way, queries, size, size), of each class
    predicted: Mapping[str, NDArray[np.int32]]  # each (way, queries)


@dataclass(frozen=True)
class DemoResult:
    """The measurements of the demonstration.

    Parameters
    ----------
    plan, learned
        Its plan and its training.
    by_pixels
        Results of the methods `ABLATION` on pixels, by name and shot.
    over_z
        Results on the features of the network: those of `ABLATION`, and of bd-i for each of `Z`.
    theory
        What eq. (25) expects of bd-i.
    shown
        An episode in pictures.
    """

    plan: Plan
    learned: Learned
    by_pixels: Mapping[tuple[str, int], Result]
    over_z: Sweep
    theory: Theory
    shown: ShownEpisode

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.plan.episodes)

    @property
    def ablation(self) -> list[Result]:
        """Results of `ABLATION` on the features of the network, shot by shot."""
        return list(self.over_z.others.values())

    def of(self, method: str, shot: int) -> Result:
        """The result of one method of `ABLATION` on the features of the network."""
        return self.over_z.others[method, shot]


def measure(plan: Plan, learned: Learned, progress: Progress | None = None) -> DemoResult:
    """Evaluate the ablation on features and pixels, and bd-i over Z, on the plan's episodes."""
    episodes, half = plan.episodes, len(plan.episodes) * len(SHOTS)
    first, second = (part_of(progress, start, 2 * half) for start in (0, half))
    by_pixels = evaluate(
        learned.pixels, learned.labels, ABLATION, shot=SHOTS, episodes=episodes, progress=first
    )
    features, labels = learned.features, learned.labels
    over_z = sweep(features, labels, ("bd-i", "z", Z), ABLATION, episodes, second)
    return DemoResult(
        plan=plan,
        learned=learned,
        by_pixels={(result.method, result.shot): result for result in by_pixels},
        over_z=over_z,
        theory=theory(features, labels, over_z),
        shown=_shown(plan, learned, {name: over_z.others[name, 1] for name in SHOWN}),
    )


def _shown(plan: Plan, learned: Learned, results: Mapping[str, Result]) -> ShownEpisode:
    """The episode whose accuracies are nearest to the means of the methods."""
    number = typical_episode(list(results.values()))
    support = plan.episodes.support[number, :, 0]
    query = plan.episodes.query[number].reshape(WAY, QUERY)  # queries are ordered by class
    return ShownEpisode(
        number=number,
        names=tuple(str(label) for label in learned.labels[support]),
        support=learned.pictures[support].reshape(WAY, SIZE, SIZE),
        query=learned.pictures[query].reshape(WAY, QUERY, SIZE, SIZE),
        predicted={
            name: result.predictions[number].reshape(WAY, QUERY) for name, result in results.items()
        },
    )
