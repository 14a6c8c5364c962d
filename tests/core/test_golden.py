"""Scores that must not change: the paper's five methods on a small task of simple numbers.

The expected scores were computed once by the slow reference implementation. To compute them again,
after a change of the method: `PYTHONPATH=tests python tests/core/test_golden.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from protorect.core.functional import Options, rectify
from reference import rectification as paper

GOLDEN = Path(__file__).parents[1] / "golden" / "rectification.json"

OPTIONS = {
    "cspn": {"z": 0, "shift": False},
    "bd-c": {"z": 0, "shift": True},
    "bd-i": {"shift": False},
    "bd-cspn": {},
    "bd-cspn-classes": {"weighting": "classes"},
}

WAYS, DIM, Z = 3, 5, 2
LABELS = [0, 1, 1, 2, 2, 2]  # one, two and three support samples
QUERY_CLASSES = [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]


def feature(n: int, sample: int) -> list[float]:
    """A feature of class n: numbers of the class, plus small ones of the sample."""
    of_class = [(5 * n + 3 * j * (n + 1)) % 7 - 2 for j in range(DIM)]
    of_sample = [(11 * sample + 5 * j * j + 7 * j * sample) % 29 - 14 for j in range(DIM)]
    return [one + other / 5 for one, other in zip(of_class, of_sample, strict=True)]


def task() -> tuple[list[list[float]], list[int], list[list[float]]]:
    """Support, labels and queries; samples are numbered consecutively."""
    support = [feature(n, sample) for sample, n in enumerate(LABELS)]
    query = [feature(n, sample) for sample, n in enumerate(QUERY_CLASSES, start=len(LABELS))]
    return support, LABELS, query


def expected(method: str) -> np.ndarray:
    return np.array(json.loads(GOLDEN.read_text())["scores"][method])


def test_every_method_has_scores_and_all_differ():
    golden = {method: expected(method) for method in OPTIONS}
    assert list(json.loads(GOLDEN.read_text())["scores"]) == list(OPTIONS) == list(paper.METHODS)
    for method, scores in golden.items():
        for other, others in golden.items():
            assert method == other or np.abs(scores - others).max() > 1e-3


@pytest.mark.parametrize("method", OPTIONS)
def test_the_reference_implementation_is_unchanged(method):
    scores = paper.scores(method, *task(), WAYS, z=Z)
    np.testing.assert_allclose(scores, expected(method), rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", OPTIONS)
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 2e-6)])
def test_the_batched_equations_are_unchanged(method, dtype, atol):
    support, labels, query = task()
    got = rectify(
        torch.tensor([support], dtype=dtype),
        torch.tensor(labels),
        torch.tensor([query], dtype=dtype),
        WAYS,
        Options(**{"z": Z, **OPTIONS[method]}),
    )
    np.testing.assert_allclose(got.scores[0].numpy(), expected(method), rtol=0, atol=atol)


def write() -> None:
    """Compute and write the golden file."""
    rounded = {
        method: np.round(paper.scores(method, *task(), WAYS, z=Z), 10).tolist()
        for method in paper.METHODS
    }
    what = "cosines (query, way) of the task in tests/test_golden.py, Z = 2, epsilon = 10"

    def lines(scores: list[list[float]]) -> str:
        return ",\n".join(f"      {json.dumps(row)}" for row in scores)

    rows = ",\n".join(
        f'    "{method}": [\n{lines(scores)}\n    ]' for method, scores in rounded.items()
    )
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(f'{{\n  "what": {json.dumps(what)},\n  "scores": {{\n{rows}\n  }}\n}}\n')


if __name__ == "__main__":
    write()
