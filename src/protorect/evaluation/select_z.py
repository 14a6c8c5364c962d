"""Selection of Z on validation classes, as in the paper."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from protorect._utils.progress import Progress, part_of
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import Result, evaluate
from protorect.methods import Method, method

Z = int | None  # None for no limit


@dataclass(frozen=True)
class Choice:
    """The Z selected for one method at one shot: the smallest of the most accurate ones."""

    method: str
    shot: int
    z: Z
    accuracy: NDArray[np.float64]  # of each Z tried, in percent on the validation episodes


def has_free_z(chosen: Method) -> bool:
    """Whether a method has a Z that was not set explicitly."""
    return getattr(chosen.options, "z", 0) != 0 and "z" not in chosen.changed


def choose_z(
    features: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    methods: Sequence[str | Method],
    *,
    shot: Sequence[int],
    way: int = 5,
    query: int = 15,
    episodes: int = 600,
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> list[Choice]:
    """Select the Z of every method that has a free one, at every shot, on validation episodes.

    Every Z up to the number of queries per class is tried, and no limit. `features` and `labels`
    are of validation classes; the other arguments are those of `evaluate`.
    """
    grid: list[Z] = [*range(query + 1), None]
    free = [chosen for chosen in map(method, methods) if has_free_z(chosen)]
    if not free:
        return []
    results = evaluate(
        features,
        labels,
        [chosen.with_options(z=z) for chosen in free for z in grid],
        way=way,
        shot=shot,
        query=query,
        episodes=episodes,
        seed=seed,
        device=device,
        progress=progress,
    )
    accuracy = np.array([result.accuracy for result in results])
    accuracy = accuracy.reshape(len(shot), len(free), len(grid))
    return [
        Choice(chosen.name, k, grid[accuracy[i, j].argmax()], accuracy[i, j])  # the first of equals
        for i, k in enumerate(shot)
        for j, chosen in enumerate(free)
    ]


def evaluate_chosen(
    features: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    methods: Sequence[str | Method],
    choices: Sequence[Choice],
    *,
    shot: Sequence[int],
    episodes: Episodes,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """`evaluate` with the Z selected for each method and shot; the results have the plain names."""
    named = [method(spelling) for spelling in methods]
    results = []
    for i, k in enumerate(shot):
        at_shot = evaluate(
            features,
            labels,
            [with_choice(chosen, k, choices) for chosen in named],
            shot=k,
            episodes=episodes,
            device=device,
            progress=part_of(progress, i * len(episodes), len(shot) * len(episodes)),
        )
        pairs = zip(at_shot, named, strict=True)
        results += [replace(result, method=chosen.name) for result, chosen in pairs]
    return results


def with_choice(chosen: Method, shot: int, choices: Sequence[Choice]) -> Method:
    """The method with the Z selected for it at this shot, or unchanged if there is none."""
    for choice in choices:
        if (choice.method, choice.shot) == (chosen.name, shot):
            return chosen.with_options(z=choice.z)
    return chosen


def z_text(z: Z) -> str:
    """Z as it is spelled in a method's name."""
    return "all" if z is None else str(z)
