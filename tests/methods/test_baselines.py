"""The baseline methods against slow reference implementations of their papers."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from helpers.clusters import clusters
from protorect import METHODS, DataError, OptionError, evaluate, method, sample_episodes
from reference.baselines import REFERENCES

OPTIONS = {
    "simpleshot": [{"center": "support"}, {"base_mean": tuple(range(24))}],
    "matching": [{"scale": 12.0}],
    "ridge": [{"penalty": 0.01}],
    "logistic": [{"c": 30.0}, {"c": 0.01}],
    "soft-kmeans": [{"iterations": 3}, {"normalize": True, "scale": 10.0}, {"scale": 0.02}],
    "label-propagation": [
        {"neighbors": 3},
        {"alpha": 0.99, "sigma": 0.1},
        {"graph": "tpn"},
        {"graph": "tpn", "neighbors": None, "sigma": 0.4},
        {"graph": "tpn", "neighbors": 4, "alpha": 0.99, "sigma": 0.3},
        {"neighbors": None, "alpha": 0.7, "sigma": 0.3},
    ],
    "laplacian-shot": [
        {"rectify": False},
        {"weight": 0.3, "neighbors": 6},
        {"iterations": 1},
        {"center": "none"},
        {"base_mean": tuple(range(-12, 12))},
    ],
}
CASES = [(name, {}) for name in REFERENCES] + [
    (name, options) for name, several in OPTIONS.items() for options in several
]


def centered(scores):
    """Scores without a constant per query."""
    return scores - scores.mean(axis=-1, keepdims=True)


def small_task(classes, shots, each, seed=0, spread=1.0):
    """Support with these numbers of shots, labels in random order, and queries."""
    features, of_row = clusters(classes=classes, each=40, seed=seed, spread=spread)
    rng = np.random.default_rng(seed)
    rows = [np.flatnonzero(of_row == n) for n in range(classes)]
    labels = rng.permutation(np.repeat(np.arange(classes), shots))
    used = dict.fromkeys(range(classes), 0)
    support = []
    for label in labels:
        support.append(features[rows[label][used[label]]])
        used[label] += 1
    query = np.concatenate([features[rows[n][20 : 20 + k]] for n, k in enumerate(each)])
    return np.array(support), labels, query


TASKS = {
    "one shot": ([1, 1, 1], [6, 6, 6]),
    "unequal": ([1, 4, 2, 1], [9, 0, 3, 1]),
    "two classes": ([3, 2], [5, 5]),
    "more samples than dimensions": ([2, 2], [14, 14]),
    "one query": ([2, 2, 2], [0, 1, 0]),
}


@pytest.mark.parametrize(("shots", "each"), TASKS.values(), ids=TASKS)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_agrees_with_the_reference(name, options, shots, each):
    support, labels, query = small_task(len(shots), shots, each)
    expected = REFERENCES[name](support, labels, query, len(shots), **options)
    for dtype, atol in ((torch.float64, 1e-6), (torch.float32, 2e-4)):
        scores = METHODS[name].with_options(**options)(
            torch.from_numpy(support).to(dtype).unsqueeze(0),
            torch.from_numpy(labels),
            torch.from_numpy(query).to(dtype).unsqueeze(0),
        )[0]
        assert scores.dtype == dtype
        size = np.abs(centered(expected)).max()
        np.testing.assert_allclose(
            centered(scores.numpy()), centered(expected), rtol=0, atol=atol * max(size, 1e-3)
        )


@pytest.mark.parametrize("name", REFERENCES)
def test_agrees_on_real_features(name):
    """Handwritten digits: features that cannot be negative and have a large mean."""
    features, labels = load_digits(return_X_y=True)
    episodes = sample_episodes(labels, shot=3, episodes=4, query=6, dirichlet=2.0)
    result = evaluate(features, labels, name, episodes=episodes)[0]
    ways = np.repeat(np.arange(5), 3)
    for i in range(len(episodes)):
        support, query = features[episodes.support[i].ravel()], features[episodes.query[i]]
        scores = REFERENCES[name](support, ways, query, 5)
        ranked = np.sort(scores, axis=1)
        clear = ranked[:, -1] - ranked[:, -2] > 1e-6 * np.abs(centered(scores)).max()
        assert clear.mean() > 0.9
        assert (result.predictions[i] == scores.argmax(axis=1))[clear].all()


def test_one_shot_simpleshot_and_matching_are_the_nearest_cosine(feature_set):
    several = ["cspn", "simpleshot", "matching"]
    cspn, *others = evaluate(*feature_set, several, shot=1, episodes=20)
    assert all((other.predictions == cspn.predictions).all() for other in others)


def test_zero_iterations_and_zero_weights_leave_the_prototypes(feature_set):
    kmeans, protonet = evaluate(
        *feature_set, ["soft-kmeans:iterations=0", "protonet"], episodes=10
    )[:2]
    assert (kmeans.predictions == protonet.predictions).all()
    specs = [
        f"laplacian-shot:center=none,rectify=no,{rest}" for rest in ("weight=0", "neighbors=0")
    ]
    *laplacian, simpleshot = evaluate(*feature_set, [*specs, "simpleshot"], shot=5, episodes=10)
    for result in laplacian:
        assert (result.predictions == simpleshot.predictions).all()


def test_queries_help_where_classes_are_balanced():
    """What the transductive papers publish: at one shot they gain over the class means."""
    features, labels = clusters(classes=20, each=40, dim=64, spread=2.0)
    names = ["protonet", "simpleshot", "soft-kmeans", "laplacian-shot"]
    protonet, simpleshot, kmeans, laplacian = evaluate(features, labels, names, shot=1)
    assert kmeans.minus(protonet).mean > kmeans.minus(protonet).ci95
    assert laplacian.minus(simpleshot).mean > 5


def test_a_common_offset_of_all_features_does_not_change_the_distances():
    features, labels = clusters(spread=0.5)
    plain, moved = (
        evaluate(rows, labels, "protonet", shot=1, episodes=30)[0].accuracy
        for rows in (features, features + np.float32(1000))
    )
    assert moved == pytest.approx(plain, abs=0.5)


def test_base_mean_is_subtracted_from_every_feature():
    features, labels = clusters(spread=1.5)
    offset = np.linspace(-30, 30, features.shape[1], dtype=np.float32)
    centered_method = METHODS["simpleshot"].with_options(base_mean=offset)
    plain = evaluate(features, labels, "simpleshot", shot=1, episodes=20)[0]
    moved, uncentered = evaluate(
        features + offset, labels, [centered_method, "simpleshot"], shot=1, episodes=20
    )
    assert (moved.predictions == plain.predictions).mean() > 0.999
    assert (uncentered.predictions != plain.predictions).any()
    assert moved.method == "simpleshot:base_mean=given"
    from_list = METHODS["simpleshot"].with_options(base_mean=offset.tolist())
    assert hash(centered_method.options) == hash(from_list.options)
    assert centered_method == from_list


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("simpleshot:center=query", "unknown center 'query'. Known: none, support."),
        ("simpleshot:base_mean=3", "base_mean cannot be text"),
        ("matching:scale=-1", "scale is -1.0; it must lie in 0 .. 1e+06."),
        ("ridge:penalty=0", "penalty is 0.0; it must lie in 1e-06 .. 1e+06."),
        ("logistic:c=inf", "c is inf; it must lie in 1e-06 .. 1e+06."),
        ("soft-kmeans:iterations=1.5", "iterations=1.5: a whole number is expected."),
        ("soft-kmeans:iterations=-1", "iterations is -1; it must be a whole number from 0 up."),
        ("soft-kmeans:normalize=2", "normalize=2: true or false is expected."),
        ("label-propagation:alpha=1", "alpha is 1.0; it must lie in 0 .. 0.9999."),
        ("label-propagation:sigma=0", "sigma is 0.0; it must lie in 0.01 .. 100."),
        ("label-propagation:neighbors=0", "it must be a whole number from 1 up or None."),
        ("label-propagation:graph=tpn,neighbors=1", "that is the sample itself; give 2 or more"),
        ("label-propagation:graph=knn", "unknown graph 'knn'. Known: tpn, zhou."),
        ("laplacian-shot:center=base", "unknown center 'base'. Did you mean 'task'?"),
        ("laplacian-shot:neighbors=all", "neighbors=all: a whole number is expected."),
        ("laplacian-shot:weight=x", "weight=x: a number is expected."),
        ("laplacian-shot:lambda=1", "unknown option of laplacian-shot 'lambda'."),
        ("protonet:z=4", "protonet has no options, 'z' was given."),
        ("protonet:z", "'z' is not an option"),
    ],
)
def test_a_wrong_option_is_refused(spec, message):
    with pytest.raises(OptionError) as error:
        method(spec)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "base_mean", [[], [1.0, float("nan")], "mean", [[1.0, 2.0]], 3.0, object()]
)
def test_an_invalid_base_mean_is_refused(base_mean):
    with pytest.raises(OptionError, match="base_mean must be one finite number per dimension"):
        METHODS["simpleshot"].with_options(base_mean=base_mean)


def test_a_base_mean_of_another_dimension_is_refused(feature_set):
    with pytest.raises(OptionError, match="base_mean has 3 dimensions and the features have 24"):
        evaluate(*feature_set, METHODS["simpleshot"].with_options(base_mean=[1.0, 2.0, 3.0]))
    with pytest.raises(OptionError, match="give one of the two"):
        METHODS["simpleshot"].with_options(base_mean=[1.0], center="support")


def test_label_propagation_refuses_what_the_memory_cannot_hold(monkeypatch, feature_set):
    monkeypatch.setattr("protorect.methods.label_propagation.physical_memory", lambda: 2.0**20)
    with pytest.raises(DataError, match=r"needs \d+ GiB for the pairs of 105 samples, and this"):
        evaluate(*feature_set, "label-propagation", shot=6, episodes=50)


def test_laplacian_shot_with_more_samples_than_dimensions_does_not_depend_on_blocks(monkeypatch):
    features, labels = clusters(dim=8)
    expected = evaluate(features, labels, "laplacian-shot", shot=5, episodes=5)[0]
    monkeypatch.setattr("protorect.methods._solvers.gram._BLOCK_BYTES", 5 * 75 * 4 * 7)
    blocks = evaluate(features, labels, "laplacian-shot", shot=5, episodes=5)[0]
    assert (blocks.predictions == expected.predictions).all()


def test_support_of_laplacian_shot_joins_by_prediction():
    """A support sample amid another class counts for that class in the rectification."""
    support = torch.tensor([[1.0, 0, 0], [0.0, 1, 0.1], [0.0, 1, 0], [0.1, 1, 0], [0, 0.9, 0]])
    labels = torch.tensor([0, 0, 1, 1, 1])
    query = torch.tensor([[1.0, 0, 0.1], [1.0, 0.1, 0], [0.0, 1, 0], [0.1, 1, 0.1]])
    chosen = METHODS["laplacian-shot"].with_options(center="none", weight=0.0)
    scores = chosen(support[None], labels, query[None])[0].double().numpy()
    expected = REFERENCES["laplacian-shot"](
        support.numpy(), labels.numpy(), query.numpy(), 2, center="none", weight=0.0
    )
    np.testing.assert_allclose(centered(scores), centered(expected), atol=1e-5)


def test_centering_matters_where_features_cannot_be_negative():
    features, labels = clusters(spread=1.5)
    features = np.maximum(features + 2, 0)
    plain, centered_on_task = evaluate(
        features, labels, ["laplacian-shot:center=none", "laplacian-shot"], shot=1, episodes=50
    )
    assert centered_on_task.minus(plain).mean > 5
