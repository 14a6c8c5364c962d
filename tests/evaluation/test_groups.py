"""Support and queries of an episode share no group."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from protorect import DataError, Episodes, evaluate, sample_episodes

LABELS = np.repeat(np.arange(8), 60)
TRACKS = np.arange(480) // 10  # six tracks of ten frames per class


def sample(groups=TRACKS, **changes):
    defaults = {"shot": 5, "episodes": 100, "seed": 3, "groups": groups}
    return sample_episodes(LABELS, **defaults | changes)


@pytest.mark.parametrize(
    "setting",
    [{}, {"dirichlet": 0.5}, {"distractors": 3}, {"present": 2}, {"present": 2, "dirichlet": 1.0}],
)
@pytest.mark.parametrize("shot", [1, 5])
def test_support_and_queries_share_no_group(shot, setting):
    episodes = sample(shot=shot, query=8, **setting)
    episodes.check_labels(LABELS)
    for support, query in zip(episodes.support, episodes.query, strict=True):
        assert not set(TRACKS[support.ravel()]) & set(TRACKS[query])
    with pytest.raises(DataError, match=r"support and queries of episode 0 share the group \d+"):
        sample(None, shot=shot, query=8, **setting).check_groups(TRACKS)


def test_the_support_comes_from_different_groups_and_the_queries_from_all_others():
    episodes = sample(shot=3, query=15)
    in_support = TRACKS[episodes.support]  # (episodes, way, shot)
    assert all(len(set(groups)) == 3 for groups in in_support.reshape(-1, 3))
    counts = [len(set(TRACKS[query])) for query in episodes.query]
    assert np.mean(counts) > 5 * 2.9  # nearly always all three that are left


def test_with_too_few_groups_the_support_takes_several_rows_of_a_group():
    videos = np.arange(480) // 20  # three per class
    episodes = sample(videos, shot=5)
    episodes.check_groups(videos)
    groups = videos[episodes.support].reshape(-1, 5)
    assert {len(set(row)) for row in groups} == {2}  # the third is for the queries
    assert all(len(set(row[:2])) == 2 for row in groups)  # so that 2 shots have two groups


def test_a_large_group_is_left_to_the_queries():
    labels = np.repeat([0, 1], 20)
    groups = np.tile([0] * 16 + [1, 2, 3, 4], 2) + 100 * labels
    episodes = sample_episodes(labels, way=2, shot=3, query=15, episodes=50, groups=groups)
    assert set(groups[episodes.support].ravel() % 100) == {1, 2, 3, 4}


def test_groups_with_rows_of_several_classes():
    rng = np.random.default_rng(0)
    for groups in (np.arange(480) // 7, rng.integers(0, 100, 480), rng.integers(0, 4, 480)):
        episodes = sample(groups, distractors=2)
        episodes.check_groups(groups)
        episodes.check_labels(LABELS)


def test_the_seed_determines_the_episodes_and_all_shots_share_their_queries():
    first, again, other = sample(), sample(), sample(seed=4)
    assert (first.query == again.query).all()
    assert (first.support == again.support).all()
    assert not (first.query == other.query).all()
    first.with_shot(1).check_groups(TRACKS)


def test_every_group_is_equally_likely_to_hold_the_support():
    episodes = sample(shot=1, episodes=4000)
    times = np.bincount(TRACKS[episodes.support].ravel())
    expected = 4000 * 5 / 48
    assert np.abs(times - expected).max() < 5 * np.sqrt(expected)
    rows = np.bincount(episodes.query.ravel())
    expected = 4000 * 5 * 15 / 480
    assert np.abs(rows - expected).max() < 5 * np.sqrt(expected)


sizes_of_a_class = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@given(st.lists(sizes_of_a_class, min_size=2, max_size=3), st.integers(1, 4), st.integers(1, 6))
@settings(deadline=None, max_examples=200)
def test_a_class_is_refused_only_if_its_groups_cannot_be_divided(classes, shot, query):
    """A search over all choices of support groups, by hand."""
    labels = np.concatenate([np.full(sum(sizes), c) for c, sizes in enumerate(classes)])
    sizes = [size for one in classes for size in one]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    most = []  # groups that the support of each class can come from
    for one in classes:
        spare = sum(one) - query
        subsets = [s for r in range(1, shot + 1) for s in combinations(one, r)]
        most.append(max((len(s) for s in subsets if shot <= sum(s) <= spare), default=0))
    options = {"way": 2, "shot": shot, "query": query, "episodes": 3, "groups": groups}
    if min(most) == 0:
        with pytest.raises(DataError, match=r"class \d has (too few groups|\d+ samples)"):
            sample_episodes(labels, **options)
        return
    episodes = sample_episodes(labels, **options)
    episodes.check_groups(groups)
    episodes.check_labels(labels)
    for support in episodes.support.reshape(-1, shot):
        assert len(set(groups[support])) == most[labels[support[0]]]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(480), "class 0 has too few groups, 1: 5 shots and 15 queries must not share one"),
        (np.zeros(480), r"\(7 more classes have too few\)"),
        (TRACKS[:-1], r"groups must be \(n,\), one per row: 480 rows, shape \(479,\)"),
        (TRACKS[:, None], r"groups must be \(n,\)"),
        (np.full(480, np.nan), "a group is NaN"),
        (["a", 1] * 240, "groups must be numbers or strings, not both: they are int, str"),
    ],
)
def test_unusable_groups_are_refused(groups, message):
    with pytest.raises(DataError, match=message):
        sample(groups)


def test_evaluate_samples_with_groups_and_refuses_episodes_that_share_one(feature_set):
    features, labels = feature_set
    groups = np.array([f"track {i // 4}" for i in range(len(labels))])
    with_groups = evaluate(features, labels, "cspn", episodes=20, groups=groups)
    episodes = sample_episodes(labels, shot=5, episodes=20, groups=groups)
    for one, same in zip(
        with_groups,
        evaluate(features, labels, "cspn", shot=[1, 5], episodes=episodes),
        strict=True,
    ):
        assert (one.per_episode == same.per_episode).all()
    evaluate(features, labels, "cspn", shot=1, episodes=episodes, groups=groups)
    with pytest.raises(DataError, match=r"share the group track \d+; sample the episodes with"):
        evaluate(
            features, labels, "cspn", episodes=sample_episodes(labels, episodes=20), groups=groups
        )


def test_only_groups_of_the_same_episode_count():
    rows = {"support": [[[0], [1]], [[2], [3]]], "query": [[2, 3], [0, 1]]}
    episodes = Episodes(**rows, query_way=[[0, 1], [0, 1]])
    episodes.check_groups(np.array([0, 1, 2, 3]))
    with pytest.raises(DataError, match="episode 0 share the group 0"):
        episodes.check_groups(np.array([0, 1, 0, 3]))
