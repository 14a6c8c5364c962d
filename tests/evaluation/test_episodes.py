import hashlib

import numpy as np
import pytest

from protorect import DataError, Episodes, OptionError, sample_episodes
from protorect.evaluation.sampling import _whole_counts

SIZES = np.array([16, 20, 25, 31, 18, 40, 22, 19])
LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(len(SIZES)), SIZES))
SETTINGS = [
    {},
    {"shot": 1, "way": 2, "query": 1},
    {"way": 8, "shot": 1},
    {"dirichlet": 0.3},
    {"distractors": 3},
    {"dirichlet": 2.0, "distractors": 2},
    {"present": 2},
    {"present": 3, "dirichlet": 1.0, "distractors": 1},
]


def sample(**changes):
    return sample_episodes(LABELS, **{"way": 5, "shot": 1, "episodes": 200, "seed": 3} | changes)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_row_appears_twice_in_an_episode(setting):
    episodes = sample(**setting)
    for support, query in zip(episodes.support, episodes.query, strict=True):
        rows = [*support.ravel(), *query]
        assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("setting", SETTINGS)
def test_rows_belong_to_the_classes_of_the_episode(setting):
    episodes = sample(**setting)
    for support, query, ways in zip(
        episodes.support, episodes.query, episodes.query_way, strict=True
    ):
        classes = LABELS[support]  # (way, shot)
        assert (classes == classes[:, :1]).all()
        classes = classes[:, 0]
        assert len(set(classes)) == episodes.way
        known = ways >= 0
        assert (LABELS[query[known]] == classes[ways[known]]).all()
        assert not set(LABELS[query[~known]]) & set(classes)


def test_balanced_episodes_have_the_requested_shape():
    episodes = sample(way=3, shot=4, query=6, episodes=11)
    assert episodes.support.shape == (11, 3, 4)
    assert episodes.query.shape == episodes.query_way.shape == (11, 18)
    assert (np.sort(episodes.query_way) == np.repeat([0, 1, 2], 6)).all()
    assert (episodes.way, episodes.shot, len(episodes)) == (3, 4, 11)


def test_distractors_are_further_queries():
    episodes = sample(distractors=3)
    assert episodes.query.shape == (200, 5 * 15 + 3 * 15)
    assert ((episodes.query_way == -1).sum(axis=1) == 45).all()
    assert episodes.query_per_class == 15


def test_dirichlet_queries_keep_their_number_and_vary_their_classes():
    episodes = sample(dirichlet=1.0, query=10, shot=2)
    counts = np.stack([(episodes.query_way == way).sum(axis=1) for way in range(5)], axis=1)
    assert (counts.sum(axis=1) == 50).all()
    assert counts.min() == 0
    assert counts.std() > 5


def test_dirichlet_proportions_have_the_mean_and_variance_of_the_distribution():
    labels = np.repeat(np.arange(6), 2000)
    for alpha in (1.0, 5.0):
        episodes = sample_episodes(labels, episodes=3000, dirichlet=alpha, query=200, seed=1)
        proportion = (episodes.query_way == 0).mean(axis=1)
        # A component of Dirichlet(alpha, ... 5 times) has mean 1/5, variance 0.16 / (5 alpha + 1).
        assert proportion.mean() == pytest.approx(0.2, abs=0.01)
        assert proportion.var() == pytest.approx(0.16 / (5 * alpha + 1), rel=0.1)


def test_dirichlet_counts_are_no_larger_than_a_class():
    labels = np.repeat(np.arange(5), 20)
    episodes = sample_episodes(labels, shot=5, episodes=300, dirichlet=0.05, seed=2)
    assert episodes.query.shape == (300, 75)
    counts = np.stack([(episodes.query_way == way).sum(axis=1) for way in range(5)], axis=1)
    assert counts.max() == 15


def counts_of(proportions, total, capacity):
    return _whole_counts(np.array([proportions]), total, np.array([capacity]))[0].tolist()


def test_dirichlet_counts_are_rounded_up_where_the_remainder_is_largest():
    assert counts_of([0.55, 0.33, 0.12], 10, [10, 10, 10]) == [6, 3, 1]
    assert counts_of([0.12, 0.33, 0.55], 10, [10, 10, 10]) == [1, 3, 6]
    assert counts_of([0.51, 0.28, 0.21], 10, [10, 10, 10]) == [5, 3, 2]


def test_dirichlet_counts_above_the_capacity_go_to_the_next_largest_classes():
    assert counts_of([0.6, 0.3, 0.1], 10, [4, 10, 10]) == [4, 5, 1]
    assert counts_of([0.1, 0.6, 0.3], 10, [10, 4, 10]) == [1, 4, 5]
    assert counts_of([0.6, 0.3, 0.1], 10, [4, 4, 10]) == [4, 4, 2]


def test_the_seed_determines_the_episodes():
    first, again, other = sample(), sample(), sample(seed=4)
    assert (first.query == again.query).all()
    assert (first.support == again.support).all()
    assert not (first.query == other.query).all()


def test_fewer_shots_are_the_same_episodes_with_less_support():
    five, one = sample(shot=5, query=10), sample(shot=1, query=10)
    assert (five.query == one.query).all()
    assert (five.with_shot(1).support == one.support).all()
    with pytest.raises(OptionError, match="have 5 shots; 6 cannot be selected"):
        five.with_shot(6)


def test_all_samples_are_equally_likely():
    labels = np.repeat(np.arange(10), 20)
    episodes = sample_episodes(labels, way=5, shot=1, query=4, episodes=8000, seed=5)
    for rows, each in ((episodes.support, 5 * 8000 / 200), (episodes.query, 5 * 4 * 8000 / 200)):
        times = np.bincount(rows.ravel(), minlength=200)
        assert np.abs(times - each).max() < 5 * np.sqrt(each)


def test_labels_may_be_strings():
    names = np.array([f"class {label}" for label in LABELS])
    assert (
        sample_episodes(names, episodes=9).query == sample_episodes(LABELS, episodes=9).query
    ).all()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"way": 9}, OptionError, "needs 9 classes, there are 8"),
        ({"way": 6, "distractors": 3}, OptionError, "needs 9 classes, there are 8"),
        ({"shot": 2}, DataError, "class 0 has 16 samples; 2 shots and 15 queries need 17"),
        ({"shot": 5}, DataError, r"need 20 \(2 more classes are too small\)"),
        ({"way": 1}, OptionError, "way is 1; it must be a whole number from 2 up"),
        ({"way": 5.0}, OptionError, "way is 5.0; it must be a whole number"),
        ({"dirichlet": "2"}, OptionError, "dirichlet is '2'"),
        ({"dirichlet": 1e308}, OptionError, "dirichlet is 1e.308"),
        ({"seed": None}, OptionError, "seed is None"),
        ({"shot": -1}, OptionError, "shot is -1"),
        ({"query": 0}, OptionError, "query is 0"),
        ({"episodes": 0}, OptionError, "episodes is 0"),
        ({"seed": -1}, OptionError, "seed is -1"),
        ({"distractors": -1}, OptionError, "distractors is -1"),
        ({"dirichlet": 0.0}, OptionError, "dirichlet is 0.0"),
        ({"dirichlet": float("nan")}, OptionError, "dirichlet is nan"),
        ({"present": 0}, OptionError, "present is 0"),
        ({"present": 6}, OptionError, "present is 6; an episode has 5 classes"),
        ({"present": 2.0}, OptionError, "present is 2.0"),
    ],
)
def test_wrong_arguments_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        sample(**changes)


def test_labels_must_be_a_list():
    with pytest.raises(DataError, match=r"got shape \(2, 2\)"):
        sample_episodes([[1, 2], [3, 4]])


def test_saved_and_loaded(tmp_path):
    episodes = sample(distractors=1)
    episodes.save(tmp_path / "e.npz")
    loaded = Episodes.load(tmp_path / "e.npz")
    for name in ("support", "query", "query_way"):
        assert (getattr(loaded, name) == getattr(episodes, name)).all()


def test_integers_of_other_types_are_loaded(tmp_path):
    episodes = sample()
    arrays = {name: getattr(episodes, name) for name in ("support", "query", "query_way")}
    np.savez(tmp_path / "e.npz", **{name: a.astype(np.int16) for name, a in arrays.items()})
    assert Episodes.load(tmp_path / "e.npz").query.dtype == np.int64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_way": np.zeros((2, 3), int)}, "must describe the same episodes"),
        ({"support": np.zeros((2, 5), int)}, r"need support \(episodes, way, shot\)"),
        ({"query_way": np.full((2, 4), 2)}, r"query_way must lie in -1 .. 1"),
        ({"query_way": np.full((2, 4), -1)}, "needs a query that belongs"),
        ({"query": np.zeros((2, 4))}, "query must hold integers, it holds float64"),
    ],
)
def test_an_inconsistent_file_is_refused(tmp_path, changes, message):
    arrays = {
        "support": np.zeros((2, 2, 1), int),
        "query": np.zeros((2, 4), int),
        "query_way": np.zeros((2, 4), int),
    }
    np.savez(tmp_path / "e.npz", **arrays | changes)
    with pytest.raises(DataError, match=message):
        Episodes.load(tmp_path / "e.npz")


@pytest.mark.parametrize("setting", SETTINGS)
def test_episodes_agree_with_the_labels_they_were_sampled_from(setting):
    sample(**setting).check_labels(LABELS)


def test_episodes_of_another_table_are_refused():
    with pytest.raises(DataError, match="the features have 100 rows"):
        sample().check_labels(LABELS[:100])
    with pytest.raises(DataError, match="or from these in another order"):
        sample().check_labels(np.roll(LABELS, 1))


@pytest.mark.parametrize(
    "changed",
    [
        lambda e: {"query_way": np.roll(e.query_way, 1, axis=1)},
        lambda e: {"query_way": np.where(e.query_way == -1, 0, e.query_way)},
        lambda e: {"query_way": np.where(e.query_way == 0, -1, e.query_way)},
        lambda e: {"support": e.support[:, :, :1].repeat(2, axis=2)},
        lambda e: {"support": np.roll(e.support, 1, axis=1)},
        lambda e: {"support": np.broadcast_to(e.support[:, :1], e.support.shape)},
        lambda e: {"query": np.where(e.query_way == 0, e.support[:, 0, :1], e.query)},
    ],
)
def test_episodes_with_wrong_classes_or_repeated_rows_are_refused(changed):
    episodes = sample(shot=2, query=10, distractors=1)
    arrays = {name: getattr(episodes, name) for name in ("support", "query", "query_way")}
    with pytest.raises(DataError, match=r"do not agree with the labels|the same row twice"):
        Episodes(**arrays | changed(episodes)).check_labels(LABELS)


def test_many_queries_do_not_make_a_shot_depend_on_others():
    labels = np.repeat(np.arange(6), 100)
    for query in (60, 63, 64, 70):
        five, one = (sample_episodes(labels, shot=k, query=query, episodes=4) for k in (5, 1))
        assert (five.with_shot(1).support == one.support).all()
        assert (five.query == one.query).all()


def test_episodes_that_cannot_fit_are_refused_before_anything_is_sampled():
    with pytest.raises(OptionError, match="do not fit into memory"):
        sample(episodes=10**12)


def test_an_episode_with_one_class_twice_is_refused():
    labels = np.repeat([0, 1, 2], 10)
    twice = Episodes(
        support=np.array([[[0], [1], [10]]]),  # two support samples of class 0 at two positions
        query=np.array([[2, 3, 11]]),
        query_way=np.array([[0, 1, 2]]),
    )
    with pytest.raises(DataError, match="do not agree with the labels"):
        twice.check_labels(labels)
    Episodes(np.array([[[0], [20], [10]]]), np.array([[2, 21, 11]]), twice.query_way).check_labels(
        labels
    )


MANY_LABELS = np.repeat(np.arange(9), 120)


@pytest.mark.parametrize(
    ("labels", "setting", "digest"),
    [
        (LABELS, {}, "b0ec3bf988533984"),
        (LABELS, {"shot": 1, "way": 2, "query": 1}, "e4fc53a2b0e6c37b"),
        (LABELS, {"way": 8}, "d28e830f3e181418"),
        (LABELS, {"dirichlet": 0.3}, "d602596dcc17268c"),
        (LABELS, {"distractors": 3}, "ed9a558da0322b9f"),
        (LABELS, {"dirichlet": 2.0, "distractors": 2}, "28a21be4a5691781"),
        (MANY_LABELS, {"shot": 5, "query": 70}, "f20b324908f3332b"),
        (MANY_LABELS, {"shot": 5, "seed": 9}, "16175488ead766d5"),
    ],
)
def test_published_episodes_do_not_change(labels, setting, digest):
    episodes = sample_episodes(labels, **{"episodes": 50} | setting)
    arrays = (episodes.support, episodes.query, episodes.query_way)
    content = b"".join(np.ascontiguousarray(array, "<i8").tobytes() for array in arrays)
    assert hashlib.sha256(content).hexdigest().startswith(digest)


def counts_by_class(episodes):
    return np.stack([(episodes.query_way == way).sum(axis=1) for way in range(5)], axis=1)


def test_only_present_classes_have_queries():
    episodes, all_present = sample(present=2, distractors=1), sample(distractors=1)
    counts = counts_by_class(episodes)
    assert (np.sort(counts, axis=1) == [0, 0, 0, 15, 15]).all()
    assert episodes.query.shape == (200, 2 * 15 + 15)
    assert episodes.query_per_class == 15
    # Which classes are present is random: else ties, which go to the first class, would count.
    assert (np.abs((counts > 0).mean(axis=0) - 0.4) < 0.15).all()
    # The rest is as in episodes with all classes.
    assert (episodes.support == all_present.support).all()
    kept = np.take_along_axis(counts, all_present.query_way.clip(min=0), axis=1) > 0
    kept |= all_present.query_way == -1
    assert (all_present.query[kept] == episodes.query.ravel()).all()
    everyone = sample(present=5, distractors=1)
    assert (everyone.query == all_present.query).all()


def test_present_classes_do_not_depend_on_the_shot():
    one, five = (sample(present=3, shot=k, query=10) for k in (1, 5))
    assert (one.query == five.query).all()
    assert (one.support == five.with_shot(1).support).all()


def test_dirichlet_among_present_classes():
    episodes = sample(present=3, dirichlet=1.0, query=4)
    counts = counts_by_class(episodes)
    assert (counts.sum(axis=1) == 12).all()
    assert ((counts > 0).sum(axis=1) <= 3).all()
    assert counts.max() > 8


def test_labels_of_mixed_types_are_refused():
    for labels in (["1", 1] * 40, np.array(["1", 1] * 40, dtype=object), ["a", np.nan] * 40):
        with pytest.raises(DataError, match="labels must be numbers or strings, not both: they"):
            sample_episodes(labels)
    with pytest.raises(DataError, match="not nested lists"):
        sample_episodes([[1, 2], [3]])
