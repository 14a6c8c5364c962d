"""docs/sort.md says what was measured, and what it measures is right."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.sorting import calibration_error, drawn
from benchmarks.sorting_page import sorting_page

from helpers.clusters import clusters
from protorect.uncertainty.classify import DEFAULT_METHOD
from protorect.uncertainty.thresholds import Thresholds

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_figures():
    figures = json.loads((ROOT / "results" / "sort.json").read_text())
    assert (ROOT / "docs" / "sort.md").read_text() == sorting_page(figures)
    assert figures["method"] == DEFAULT_METHOD, "run python -m benchmarks.sorting again"
    assert figures["thresholds"] == {"unknown": Thresholds().unknown, "unsure": Thresholds().unsure}


def test_calibration_error_by_hand():
    probability, right = np.array([0.9, 0.9, 0.5, 0.5]), np.array([1, 0, 1, 1])
    assert calibration_error(probability, right) == pytest.approx((0.8 + 1.0) / 4)
    assert calibration_error(np.ones(3), np.ones(3)) == 0


def test_examples_are_not_in_the_pile():
    features, labels = clusters(classes=5, each=10)
    support, known, pile, truth = drawn(features, labels, np.arange(5), 3, 2, seed=0)
    assert support.shape[0] == 9
    assert sorted(set(known.tolist())) == [0, 1, 2]
    assert len(pile) == 5 * 7
    assert (truth == -1).sum() == 14
    assert not (support[:, None] == pile[None]).all(axis=-1).any()
