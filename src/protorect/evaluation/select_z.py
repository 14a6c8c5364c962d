"""Selection of Z among the accuracies on validation classes, as in the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.evaluation.result import Result
from protorect.methods import Method

Z = int | None  # None for no limit


@dataclass(frozen=True, eq=False)
class Choice:
    """The Z selected for one method at one shot: the smallest of the most accurate ones."""

    method: str
    shot: int
    z: Z
    accuracy: NDArray[np.float64]  # of each Z tried, in percent on the validation episodes


def has_free_z(chosen: Method) -> bool:
    """Whether a method has a Z that was not set explicitly."""
    return getattr(chosen.options, "z", 0) != 0 and "z" not in chosen.changed


def z_grid(query: int) -> list[Z]:
    """The Z to try: every one up to the number of queries per class, and no limit."""
    return [*range(query + 1), None]


def best_of_grid(
    methods: Sequence[Method], shots: Sequence[int], grid: Sequence[Z], results: Sequence[Result]
) -> list[Choice]:
    """The choice of every method at every shot; results come by shot, then method, then Z."""
    accuracy = np.array([result.accuracy for result in results])
    accuracy = accuracy.reshape(len(shots), len(methods), len(grid))
    return [
        Choice(chosen.name, k, grid[accuracy[i, j].argmax()], accuracy[i, j])  # the first of equals
        for i, k in enumerate(shots)
        for j, chosen in enumerate(methods)
    ]


def chosen_options(method: str, shot: int, choices: Sequence[Choice]) -> dict[str, Any]:
    """The options selected for a method at a shot; empty if there are none."""
    found = [one.z for one in choices if (one.method, one.shot) == (method, shot)]
    return {"z": found[0]} if found else {}


def z_text(z: Z) -> str:
    """Z as it is spelled in a method's name."""
    return "all" if z is None else str(z)
