"""Numbers of the experiments against the library's own evaluation and slow readings."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from protorect import OptionError, evaluate, sample_episodes
from protorect.paper.experiments import EXPERIMENTS, experiment, run
from protorect.paper.measure import Setting, accuracies, chosen_z
from protorect.paper.pictures import pictures
from protorect.paper.robust import mean_average_precision, robustness
from protorect.paper.sources import FeatureFolder, Source
from protorect.paper.weighting import EPSILONS, weighting_study

SETTING = Setting(Source("omniglot", "conv64"), episodes=20)
METHODS = ("cspn", "bd-cspn")


@pytest.fixture(scope="module")
def omniglot(features):
    return FeatureFolder(features).open(SETTING.source)


def test_accuracies_are_those_of_evaluate_with_the_chosen_z(omniglot):
    found = accuracies(omniglot, METHODS, [SETTING], 3, None).measured
    assert [(one.method, one.shot) for one in found] == [(m, k) for k in (1, 5) for m in METHODS]
    choices = {(c.method, c.shot): c for c in chosen_z(omniglot, METHODS, SETTING, 3)}
    test = omniglot.test
    episodes = sample_episodes(test.labels, shot=5, episodes=20, seed=3)
    for one in found:
        spelled = one.method if one.z is None else f"{one.method}:z={one.z}"
        (result,) = evaluate(test.features, test.labels, spelled, shot=one.shot, episodes=episodes)
        assert one.value == result.accuracy
        assert one.ci95 == result.ci95
        assert (one.z is not None) == ((one.method, one.shot) in choices)
        assert (one.way, one.query, one.episodes, one.distractors) == (5, 15, 20, 0)


def test_validation_has_as_many_ways_as_there_are(omniglot):
    many = replace(SETTING, way=300)
    assert chosen_z(omniglot, ["bd-i"], many, 0)  # of 12 classes


def test_too_few_classes_name_the_file(omniglot):
    with pytest.raises(OptionError, match=r"conv64-test.npz: an episode needs 300 classes"):
        accuracies(omniglot, ["cspn"], [replace(SETTING, way=300)], 0, None)


def test_robust_accuracy_is_that_of_evaluate_with_distractors(omniglot):
    settings = [replace(SETTING, distractors=n) for n in (0, 2)]
    found = robustness(omniglot, METHODS, settings, 0, None).measured
    assert len(found) == 2 * 2 * 2 * 2  # settings, shots, methods, quantities
    test = omniglot.test
    for one in found:
        if one.quantity == "accuracy":
            spelled = one.method if one.z is None else f"{one.method}:z={one.z}"
            results = evaluate(
                test.features, test.labels, spelled, shot=[1, 5], episodes=20,
                distractors=one.distractors,
            )  # fmt: skip
            result = next(r for r in results if r.shot == one.shot)
            assert one.value == pytest.approx(result.accuracy, abs=1e-4)


def test_mean_average_precision_by_the_slow_reading():
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.uniform(-1, 1, size=(3, 40, 4)))
    truth = torch.from_numpy(rng.integers(-1, 4, size=(3, 40)))
    found = mean_average_precision(scores, truth, top=6)
    for task in range(3):
        of_classes = []
        probabilities = torch.softmax(10 * scores[task], dim=-1)
        predicted = scores[task].argmax(dim=-1)
        for way in range(4):
            taken = sorted(
                (q for q in range(40) if predicted[q] == way),
                key=lambda q: -float(probabilities[q, way]),
            )[:6]
            right = [int(truth[task, q]) == way for q in taken]
            ranked = [float(probabilities[q, way]) for q in taken]
            of_classes.append(average_precision_score(right, ranked) if any(right) else 0.0)
        assert float(found[task]) == pytest.approx(np.mean(of_classes))


def test_perfect_and_hopeless_rankings():
    truth = torch.tensor([[0, 0, 1, 1]])
    sure = torch.nn.functional.one_hot(truth, 2).double()
    assert mean_average_precision(sure, truth).tolist() == [1.0]
    assert mean_average_precision(1 - sure, truth).tolist() == [0.0]


def test_the_study_of_the_weights(omniglot):
    study = weighting_study(omniglot, ["cspn"], [SETTING], 0, None).drawings
    test = omniglot.test
    spelled = ["cspn", "bd-cspn", "bd-cspn-classes"]
    results = evaluate(test.features, test.labels, spelled, shot=[1, 5], episodes=20)
    accuracy = {(one.method, one.shot): one.accuracy for one in results}
    at = EPSILONS.index(10.0)
    for shot in (1, 5):
        curves = study["shots"][str(shot)]
        assert curves["cspn"] == accuracy["cspn", shot]
        assert curves["samples"]["accuracy"][at] == accuracy["bd-cspn", shot]
        assert curves["classes"]["accuracy"][at] == accuracy["bd-cspn-classes", shot]
        gain = accuracy["bd-cspn", shot] - accuracy["cspn", shot]
        assert curves["samples"]["gain"][at] == pytest.approx(gain)
    shares = study["shots"]["1"]["samples"]["support_share"]
    assert shares == sorted(shares)  # the sharper, the more the labelled sample outweighs
    assert shares[-1] > 0.99
    assert -1 < study["shots"]["1"]["cosine"] < 1


def test_the_support_share_by_hand(omniglot):
    # One episode, one class at a time, as eq. (6) is printed.
    test = omniglot.test
    study = weighting_study(omniglot, ["cspn"], [replace(SETTING, episodes=2)], 0, None).drawings
    episodes = sample_episodes(test.labels, shot=5, episodes=2).with_shot(1)
    unit = test.features / np.linalg.norm(test.features, axis=1, keepdims=True)
    shares, cosines = [], []
    for support_rows, query_rows in zip(episodes.support, episodes.query, strict=True):
        support, query = unit[support_rows[:, 0]], unit[query_rows]
        query = query + support.mean(axis=0) - query.mean(axis=0)
        query /= np.linalg.norm(query, axis=1, keepdims=True)
        scores = query @ support.T
        for way in range(5):
            own = np.sort(scores[scores.argmax(axis=1) == way, way])[::-1][:8]
            cosines.append(own)
            shares.append(np.exp(10) / (np.exp(10) + np.exp(10 * own).sum()))
    curves = study["shots"]["1"]
    found = curves["samples"]["support_share"][EPSILONS.index(10.0)]
    assert found == pytest.approx(np.mean(shares), abs=1e-4)
    assert curves["cosine"] == pytest.approx(np.concatenate(cosines).mean(), abs=1e-4)


def test_the_numbers_behind_the_figures(omniglot):
    held = pictures(omniglot, ["cspn", "bd-i"], [SETTING], 0, None).drawings
    test = omniglot.test
    curve = held["against_z"]["classes"]["1"]["accuracy"]
    results = evaluate(
        test.features, test.labels, "bd-i:z=4,weighting=classes", shot=[1, 5], episodes=20
    )
    assert curve[4] == results[0].accuracy
    assert len(curve) == 16
    assert np.shape(held["episode"]["query"]) == (75, 2)
    assert np.shape(held["episode"]["expected"]) == (5, 2)
    assert np.shape(held["shift"]["centres"]) == (3, 2)
    bias = held["bias"]["1"]
    assert bias["mean"]["basic"] > bias["mean"]["classes"] > 0
    assert len(bias["drawn"]["basic"]) == bias["classes"] == 12


def test_the_bias_by_hand(omniglot):
    test = omniglot.test
    one = replace(SETTING, episodes=3)
    bias = pictures(omniglot, ["cspn"], [one], 0, None).drawings["bias"]["1"]
    episodes = sample_episodes(test.labels, shot=5, episodes=3).with_shot(1)
    unit = test.features / np.linalg.norm(test.features, axis=1, keepdims=True)
    angles = {}
    for rows in episodes.support.reshape(-1):
        label = test.labels[rows]
        mean = unit[test.labels == label].mean(axis=0)
        cosine = unit[rows] @ mean / np.linalg.norm(mean)
        angles.setdefault(label, []).append(np.degrees(np.arccos(cosine)))
    assert bias["classes"] == len(angles)
    expected = np.mean([np.mean(of_class) for of_class in angles.values()])
    assert bias["mean"]["basic"] == pytest.approx(expected, abs=1e-3)


def test_a_run_takes_what_is_there_and_says_what_it_took(features):
    record = run(experiment("omniglot"), FeatureFolder(features), episodes=5)
    assert {one.backbone for one in record.measured} == {"conv64"}
    assert {one.episodes for one in record.measured} == {5}
    assert [one["split"] for one in record.features] == ["val", "test"]
    assert run(experiment("main"), FeatureFolder(features)) is None


def test_every_table_belongs_to_an_experiment():
    tables = [number for one in EXPERIMENTS.values() for number in one.tables]
    assert sorted(tables) == list(range(1, 15))


def test_the_published_settings_of_omniglot_are_measured():
    ways = {s.way for s in EXPERIMENTS["higher-way"].settings if s.source == SETTING.source}
    assert ways == {10, 20, 50, 200, 1000}
