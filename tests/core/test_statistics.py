import math

import numpy as np
import pytest

from protorect.core.statistics import mean_interval, paired_difference


def test_interval_by_hand():
    # mean 2, sample deviation sqrt(((-1)^2 + 0 + 1^2) / 2) = 1, interval 1.96 / sqrt(3)
    mean, ci95 = mean_interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert ci95 == pytest.approx(1.959964 / math.sqrt(3), rel=1e-6)


def test_two_values_have_an_interval():
    assert mean_interval([1.0, 3.0]).ci95 == pytest.approx(1.959964, rel=1e-6)  # deviation sqrt(2)


def test_interval_of_one_value_is_nan():
    mean, ci95 = mean_interval([4.0])
    assert mean == 4.0
    assert math.isnan(ci95)


def test_95_percent_of_the_intervals_cover_the_mean():
    rng = np.random.default_rng(0)
    draws = rng.normal(3.0, 2.0, size=(4000, 50))
    covered = [abs(mean - 3.0) <= ci95 for mean, ci95 in map(mean_interval, draws)]
    assert 0.93 < np.mean(covered) < 0.96


def test_paired_difference_cancels_what_episodes_have_in_common():
    rng = np.random.default_rng(1)
    episode = rng.normal(70, 10, size=500)
    first, second = episode + 1 + rng.normal(0, 0.1, 500), episode
    mean, ci95 = paired_difference(first, second)
    assert mean == pytest.approx(1.0, abs=0.05)
    assert ci95 < 0.02 < mean_interval(first).ci95


def test_paired_difference_needs_the_same_episodes():
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        paired_difference([1, 2], [1, 2, 3])
