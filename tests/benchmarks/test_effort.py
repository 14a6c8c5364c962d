"""The simulated person: what is counted, and when it stops."""

import numpy as np
import pytest
from benchmarks.effort_classifiers import (
    PERSONS,
    Predicted,
    by_density,
    by_different_margins,
    by_margin,
    plus,
)

from benchmarks import effort


@pytest.fixture
def samples():
    """Four classes of thirty samples around directions that overlap."""
    random = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 30)
    rows = np.eye(4, 16)[truth] + 0.45 * random.standard_normal((120, 16))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32), truth


def test_a_person_starts_with_one_label_per_class_and_gives_ten_at_a_time(samples):
    one = effort.Effort(*samples, plus, seed=0)
    assert np.bincount(samples[1][one.labeled]).tolist() == [1, 1, 1, 1]
    one.suggest(by_margin)
    assert one.labeled.sum() == 14


def test_given_labels_count_as_right(samples):
    def wrong(support, labels, unlabeled):
        n = len(unlabeled)
        return Predicted(np.full(n, 4), np.ones(n), np.ones(n))  # a class that nothing is of

    one = effort.Effort(*samples, wrong, seed=0)
    assert one.right == pytest.approx(4 / 120)
    one.suggest(by_margin)
    assert one.right == pytest.approx(14 / 120)


@pytest.mark.parametrize("person", PERSONS)
def test_every_person_reaches_the_targets_or_stops_at_the_limit(samples, person):
    classifier, suggestion = PERSONS[person]
    found = effort.labels_to_targets(effort.Effort(*samples, classifier, 0), suggestion, 60)
    counts = [count for count, _ in found["curve"]]
    assert counts == list(range(0, 10 * len(counts), 10))
    assert counts[-1] <= 60
    for target, needed in zip(effort.TARGETS, found["needed"], strict=True):
        before = [right for count, right in found["curve"] if needed is None or count < needed]
        assert all(right < target for right in before)


def test_review_ends_with_99_percent_right_and_counts_pages_as_one_act(samples):
    one = effort.Effort(*samples, plus, seed=0)
    counted = effort.acts_with_review(one, by_margin)
    assert one.right >= 0.99
    assert counted["looked"] > counted["acts"] >= 8


def test_near_duplicates_are_not_suggested_together():
    rows = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)  # three pairs of equal samples
    found = Predicted(np.zeros(6, np.int64), np.ones(6), np.arange(6) / 10)
    for suggestion in (by_different_margins, by_density):
        chosen = suggestion(found, rows, rows[:1], 3)
        assert sorted(place // 2 for place in chosen) == [0, 1, 2]
    assert by_margin(found, rows, rows[:1], 3).tolist() == [0, 1, 2]


def test_a_target_that_one_seed_misses_is_a_dash():
    assert effort._cell([10, None]) == "-"
    assert effort._cell([10, 20]) == "15 ± 10"
    runs = [{"needed": [0, 10, 20]}, {"needed": [0, 20, 20]}]
    usual = [{"needed": [0, 60, 90]}, {"needed": [0, 60, 90]}]
    assert effort._ratio(runs, usual) == "0.25"
    assert effort._ratio(runs, [{"needed": [0, None, None]}, usual[0]]) == "-"
