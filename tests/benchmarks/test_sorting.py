"""The tasks and the calibration error of the benchmark of sorting."""

import numpy as np
import pytest
from benchmarks.sorting import calibration_error, sample_task

from helpers.clusters import clusters


def test_calibration_error_by_hand():
    probability, correct = np.array([0.9, 0.9, 0.5, 0.5]), np.array([1, 0, 1, 1])
    assert calibration_error(probability, correct) == pytest.approx((0.8 + 1.0) / 4)
    assert calibration_error(np.ones(3), np.ones(3)) == 0


def test_examples_are_not_among_the_queries():
    features, labels = clusters(classes=5, each=10)
    support, way, query, truth = sample_task(features, labels, np.arange(5), 3, 2, seed=0)
    assert support.shape[0] == 9
    assert sorted(set(way.tolist())) == [0, 1, 2]
    assert len(query) == 5 * 7
    assert (truth == -1).sum() == 14
    assert not (support[:, None] == query[None]).all(axis=-1).any()
