"""Selection of Z among the accuracies on validation classes, as in the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def chosen_options(method: str, shot: int, choices: Sequence[Choice]) -> dict[str, Any]:
    """The options selected for a method at a shot; empty if there are none."""
    found = [one.z for one in choices if (one.method, one.shot) == (method, shot)]
    return {"z": found[0]} if found else {}


def z_text(z: Z) -> str:
    """Z as it is spelled in a method's name."""
    return "all" if z is None else str(z)
