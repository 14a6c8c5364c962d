"""Expected accuracy, and intervals of shares."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from protorect.uncertainty.expected_accuracy import (
    binomial_interval,
    expected_accuracy,
    wilson_interval,
)


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (49, 50), (50, 50), (0, 50), (7, 20)])
def test_the_exact_interval_is_that_of_scipy(right, n):
    expected = binomtest(right, n).proportion_ci(0.95, "exact")
    assert binomial_interval(right, n) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("share", [0.7, 0.95, 0.99])
def test_the_exact_interval_covers_in_95_of_100_audits(share):
    n = 50
    counts = np.arange(n + 1)
    covered = [low <= share <= high for low, high in (binomial_interval(k, n) for k in counts)]
    assert binom.pmf(counts, n, share)[covered].sum() >= 0.95


def test_the_wilson_interval_is_that_of_scipy():
    expected = binomtest(18, 20).proportion_ci(0.95, "wilson")
    assert wilson_interval(0.9, 20) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_the_value_is_the_mean_and_checked_labels_are_right():
    p = np.array([0.5, 0.9, 0.7, 0.9], np.float32)
    value, low, high = expected_accuracy(p, 4, 30)
    assert value == pytest.approx((3.0 + 4) / 8)
    assert 0.5 <= low < value < high <= 1
    assert expected_accuracy(p[:0], 0, 0) is None
    assert expected_accuracy(p[:0], 5, 5) == (1.0, 1.0, 1.0)


def test_more_examples_give_a_narrower_interval_and_never_one_of_chance_alone():
    p = np.full(400, 0.9, np.float32)
    widths = [high - low for _, low, high in (expected_accuracy(p, 0, n) for n in (5, 50, 5000))]
    assert widths[0] > widths[1] > widths[2]
    low, high = wilson_interval(0.9, 400)
    assert widths[2] == pytest.approx(high - low, rel=0.1)


def test_the_interval_covers_in_nine_of_ten_cases_where_the_probabilities_are_true():
    """Few labels that are nearly all right: their share is often exactly 1."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        p = rng.beta(40, 1, size=75).astype(np.float32)
        _, low, high = expected_accuracy(p, 0, 5000)
        covered.append(low <= (rng.random(75) < p).mean() <= high)
    assert np.mean(covered) > 0.9
