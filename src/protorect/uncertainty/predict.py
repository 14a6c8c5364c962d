"""Features of examples and of a pile to labels with their probabilities, and who is set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect._utils.tensors import tensor_of
from protorect.methods import Method, method
from protorect.uncertainty.calibration import Calibration, leave_one_out, thinned
from protorect.uncertainty.ood import Looked, company

DEFAULT_METHOD = "bd-cspn-plus"
# A pile of fewer pictures a class says nothing about the classes: examples alone decide.
SMALL_PILE, METHOD_OF_SMALL_PILE = 2, "cspn"
_COSINES = "bd-cspn-classes"
_UNCALIBRATED = Calibration(temperature=10.0, likeness=0.0, spread=1.0)
_ROWS_AT_ONCE = 16384


@dataclass(frozen=True)
class Classified:
    """What a pile was taken for, each (n,).

    Parameters
    ----------
    best, second
        Positions of the two likeliest classes.
    probability, second_probability
        Of those.
    familiarity
        0 .. 1, how like the examples of its class a picture and its neighbours are, as a share of
        the pictures that would be less so.
    method
        The name of the method that was used.
    temperature
        The factor of its scores in the softmax.
    """

    best: NDArray[np.int64]
    second: NDArray[np.int64]
    probability: NDArray[np.float32]
    second_probability: NDArray[np.float32]
    familiarity: NDArray[np.float32]
    method: str
    temperature: float


def chosen_method(spelling: str | Method | None, pictures: int, ways: int) -> Method:
    """The method of this name; if none is given, one that suits the size of the pile."""
    if spelling is not None:
        return method(spelling)
    small = pictures < SMALL_PILE * ways
    return method(METHOD_OF_SMALL_PILE if small else DEFAULT_METHOD)


@torch.inference_mode()
def classify(
    support: NDArray[np.float32],
    labels: NDArray[np.int64],
    pile: NDArray[np.float32],
    spelling: str | Method | None = None,
) -> Classified:
    """Label a pile and say how sure each label is.

    Parameters
    ----------
    support, labels
        (n_support, dim) and the class positions 0 .. ways - 1 of the examples.
    pile
        (n, dim), n from 1 up.
    spelling
        The name of a method; None for one that suits.
    """
    examples, known, rows = tensor_of(support), tensor_of(labels), tensor_of(pile)
    ways = int(known.max()) + 1
    chosen = chosen_method(spelling, len(pile), ways)
    cosines = method(METHOD_OF_SMALL_PILE if chosen.name == METHOD_OF_SMALL_PILE else _COSINES)
    cosines = chosen if chosen.name == cosines.name else cosines
    scores = chosen(examples[None], known, rows[None])[0]
    near = scores if cosines is chosen else cosines(examples[None], known, rows[None])[0]
    left_out = leave_one_out(chosen, cosines, examples, known, rows, scores)
    calibration = Calibration.of(left_out) if len(left_out.labels) else _UNCALIBRATED
    looked = Looked(rows, scores, near)
    neighbours = looked.part(thinned(len(rows)))
    parts = [
        _answers(calibration, looked.part(slice(i, i + _ROWS_AT_ONCE)), neighbours)
        for i in range(0, len(rows), _ROWS_AT_ONCE)
    ]
    best, second, first, runner_up, familiarity = (
        torch.cat(column).numpy() for column in zip(*parts, strict=True)
    )
    return Classified(
        best, second, first, runner_up, familiarity, chosen.name, calibration.temperature
    )


def _answers(calibration: Calibration, pictures: Looked, pile: Looked) -> tuple[Tensor, ...]:
    chances = calibration.probabilities(pictures.scores)
    values, ways = chances.topk(2, dim=-1)
    around = company(pictures, pile)
    familiarity = calibration.familiarity(chances, pictures.cosines, around)
    return ways[:, 0], ways[:, 1], values[:, 0], values[:, 1], familiarity
