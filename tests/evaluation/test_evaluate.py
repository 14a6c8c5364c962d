from copy import deepcopy
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from helpers.clusters import clusters
from protorect import (
    METHODS,
    DataError,
    FeatureTable,
    OptionError,
    evaluate,
    sample_episodes,
    save_features,
)
from protorect.core.statistics import mean_interval
from protorect.evaluation.compare import compare
from protorect.methods import PAPER
from reference import rectification as reference


@pytest.mark.parametrize("setting", [{}, {"dirichlet": 1.0}, {"distractors": 2}])
@pytest.mark.parametrize("shot", [1, 5])
def test_every_prediction_agrees_with_the_reference_implementation(shot, setting):
    features, labels = clusters(dtype=np.float32)
    episodes = sample_episodes(labels, shot=shot, episodes=5, seed=1, **setting)
    results = evaluate(features, labels, PAPER, shot=shot, episodes=episodes)
    ways = np.repeat(np.arange(5), shot)
    for result in results:
        for i in range(len(episodes)):
            support = features[episodes.support[i].ravel()].astype(np.float64)
            query = features[episodes.query[i]].astype(np.float64)
            scores = reference.scores(result.method, support, ways, query, ways=5)
            ranked = np.sort(scores, axis=1)
            clear = ranked[:, -1] - ranked[:, -2] > 1e-5
            assert (result.predictions[i] == scores.argmax(axis=1))[clear].all()
            right = (scores.argmax(axis=1) == episodes.query_way[i])[episodes.query_way[i] >= 0]
            assert result.per_episode[i] == pytest.approx(100 * right.mean(), abs=100 / 75)


def test_results_come_shot_by_shot_in_the_order_of_the_methods(feature_set):
    results = evaluate(*feature_set, ["bd-cspn", "cspn"], way=3, shot=[1, 5], query=7, episodes=20)
    assert [(r.method, r.shot) for r in results] == [
        ("bd-cspn", 1),
        ("cspn", 1),
        ("bd-cspn", 5),
        ("cspn", 5),
    ]
    first = results[0]
    assert (first.way, first.query, first.episodes) == (3, 7, 20)
    assert first.per_episode.shape == (20,)
    assert (first.accuracy, first.ci95) == mean_interval(first.per_episode)
    assert first.seconds > 0
    assert first.minus(results[1]).mean == pytest.approx(first.accuracy - results[1].accuracy)


def test_accuracy_of_perfect_and_of_constant_features():
    labels = np.repeat(np.arange(6), 20)
    perfect = evaluate(np.eye(6)[labels], labels, ["cspn"], shot=1, episodes=10)[0]
    assert (perfect.accuracy, perfect.ci95) == (100.0, 0.0)
    constant = evaluate(np.ones((120, 4)), labels, ["cspn"], shot=1, episodes=10)[0]
    assert constant.accuracy == 20.0


def test_distractors_are_not_scored(feature_set):
    result = evaluate(*feature_set, ["cspn"], shot=1, distractors=3, episodes=30)[0]
    plain = evaluate(*feature_set, ["cspn"], shot=1, episodes=200)[0]
    assert result.predictions.shape == (30, 75 + 45)
    assert result.accuracy == pytest.approx(plain.accuracy, abs=result.ci95 + plain.ci95 + 2)


@pytest.mark.parametrize("name", METHODS)
def test_batches_do_not_change_the_predictions(monkeypatch, feature_set, name):
    whole = evaluate(*feature_set, [name], shot=5, episodes=7)[0]
    monkeypatch.setattr("protorect.evaluation.tasks.BATCH_BYTES", 80_000)  # three episodes
    parts = evaluate(*feature_set, [name], shot=5, episodes=7)[0]
    assert (whole.predictions == parts.predictions).all()
    monkeypatch.setattr("protorect.evaluation.tasks.BATCH_BYTES", 1)  # one episode at a time
    single = evaluate(*feature_set, [name], shot=5, episodes=7)[0]
    assert (whole.predictions == single.predictions).all()


def test_the_same_seed_gives_the_same_results_and_a_shot_does_not_depend_on_others(feature_set):
    both = evaluate(*feature_set, ["bd-cspn"], shot=[1, 5], episodes=40, seed=7)
    alone = evaluate(*feature_set, ["bd-cspn"], shot=1, episodes=40, seed=7)
    assert (both[0].per_episode == alone[0].per_episode).all()
    other = evaluate(*feature_set, ["bd-cspn"], shot=1, episodes=40, seed=8)
    assert not (alone[0].per_episode == other[0].per_episode).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floating_types(dtype):
    features, labels = clusters(spread=0.5)
    expected = evaluate(features, labels, ["bd-cspn"], shot=1, episodes=30)[0]
    tensor = torch.from_numpy(features).to(dtype)
    result = evaluate(tensor, torch.from_numpy(labels), ["bd-cspn"], shot=1, episodes=30)[0]
    assert result.accuracy == pytest.approx(expected.accuracy, abs=0.5)


def test_labels_may_be_names_and_the_device_may_be_given(feature_set):
    features, labels = feature_set
    names = np.array([f"bird {label:02}" for label in labels])
    by_name = evaluate(features, names, ["bd-cspn"], shot=1, episodes=30, device="cpu")[0]
    by_number = evaluate(features, labels, ["bd-cspn"], shot=1, episodes=30)[0]
    assert (by_name.per_episode == by_number.per_episode).all()


def test_progress_rises_to_the_number_of_episodes(monkeypatch, feature_set):
    monkeypatch.setattr("protorect.evaluation.tasks.BATCH_BYTES", 200_000)
    calls = []
    evaluate(
        *feature_set, ["cspn"], shot=[1, 5], episodes=50, progress=lambda *now: calls.append(now)
    )
    assert calls == sorted(calls)
    assert len(calls) > 2
    assert calls[-1] == (100, 100)


def test_features_are_not_modified(feature_set):
    before = feature_set[0].copy()
    evaluate(*feature_set, list(METHODS), episodes=10)
    assert (feature_set[0] == before).all()


def test_one_method_or_shot_need_not_be_in_a_list(feature_set):
    for methods in ("bd-cspn", METHODS["bd-cspn"]):
        results = evaluate(*feature_set, methods, shot=np.int64(5), episodes=5)
        assert [(r.method, r.shot) for r in results] == [("bd-cspn", 5)]
    several = evaluate(*feature_set, "cspn", shot=np.array([1, 5]), episodes=5)
    assert [r.shot for r in several] == [1, 5]


def test_given_episodes_determine_the_shot(feature_set):
    episodes = sample_episodes(feature_set[1], shot=3, episodes=5)
    assert [r.shot for r in evaluate(*feature_set, "cspn", episodes=episodes)] == [3]


def test_wrong_arguments_are_refused(feature_set):
    for wrong in (5.0, 0, "5"):
        with pytest.raises(OptionError, match="shot is"):
            evaluate(*feature_set, shot=wrong)
    with pytest.raises(OptionError, match="is no method"):
        evaluate(*feature_set, [5])
    with pytest.raises(OptionError, match="is no method"):
        evaluate(*feature_set, 5)
    with pytest.raises(OptionError, match="device 'meta' cannot be used"):
        evaluate(*feature_set, device="meta")
    with pytest.raises(OptionError, match="no method given"):
        evaluate(*feature_set, [])
    with pytest.raises(OptionError, match="no shot given"):
        evaluate(*feature_set, shot=[])
    with pytest.raises(OptionError, match="Did you mean 'bd-cspn'"):
        evaluate(*feature_set, ["bd-cspm"])
    with pytest.raises(OptionError, match="device 'abacus'"):
        evaluate(*feature_set, device="abacus")
    episodes = sample_episodes(np.repeat(np.arange(30), 40))
    with pytest.raises(DataError, match="sampled from another feature file"):
        evaluate(*feature_set, episodes=episodes, shot=1)


def same(results, expected):
    assert [(r.method, r.shot) for r in results] == [(r.method, r.shot) for r in expected]
    for one, other in zip(results, expected, strict=True):
        assert (one.predictions == other.predictions).all()


def test_features_and_episodes_may_be_files(tmp_path, feature_set):
    path, saved = tmp_path / "f.npz", tmp_path / "e.npz"
    save_features(path, *feature_set)
    expected = evaluate(*feature_set, "bd-cspn", shot=2, episodes=20)
    same(evaluate(path, methods="bd-cspn", shot=2, episodes=20), expected)
    same(evaluate(FeatureTable.of(path), methods="bd-cspn", shot=2, episodes=20), expected)
    sample_episodes(feature_set[1], shot=2, episodes=20).save(saved)
    same(evaluate(str(path), None, "bd-cspn", episodes=saved), expected)


def test_validation_may_be_a_file_a_table_or_arrays(tmp_path, feature_set):
    validation = clusters(spread=2.0, seed=1)
    save_features(tmp_path / "v.npz", *validation)
    options = {"methods": ["cspn", "bd-cspn"], "episodes": 20}
    results = [
        evaluate(*feature_set, **options, validation=given)
        for given in (tmp_path / "v.npz", validation, FeatureTable.of(*validation))
    ]
    for other in results[1:]:
        same(other, results[0])
        assert [one.chosen for one in other] == [one.chosen for one in results[0]]
    few = (validation[0][::10], validation[1][::10])
    with pytest.raises(DataError, match=r"^validation: class 0 has 4 samples"):
        evaluate(*feature_set, **options, validation=few)


def test_the_base_mean_is_subtracted(tmp_path, feature_set):
    features, labels = feature_set[0] + 10, feature_set[1]
    given = METHODS["simpleshot"].with_options(base_mean=features.mean(axis=0, dtype=np.float64))
    expected = evaluate(features, labels, ["cspn", given], episodes=20)
    results = evaluate(features, labels, ["cspn", "simpleshot"], episodes=20, base=features)
    same(results, expected)
    assert results[1].method == "simpleshot:base_mean=given"
    with pytest.raises(OptionError, match="base is for simpleshot and laplacian-shot; give"):
        evaluate(features, labels, base=features)


def test_methods_on_pictures_need_a_file_of_features(feature_set):
    with pytest.raises(OptionError, match="give its path instead of features and labels"):
        evaluate(*feature_set, "tft", network="conv64", pictures="packed")
    with pytest.raises(OptionError, match="network and pictures go together"):
        evaluate(*feature_set, "tft", network="conv64")


def test_absent_classes_are_not_scored_and_may_be_predicted(feature_set):
    (result,) = evaluate(*feature_set, "cspn", shot=1, episodes=50, present=2)
    assert (result.query, result.predictions.shape) == (15, (50, 30))
    episodes = sample_episodes(feature_set[1], episodes=50, present=2)
    same([result], evaluate(*feature_set, "cspn", episodes=episodes))
    assert any(len(np.unique(predicted)) > 2 for predicted in result.predictions)


def test_progress_of_validation_and_evaluation_rises_to_one_total(feature_set):
    calls = []
    evaluate(
        *feature_set,
        ["cspn", "bd-cspn"],
        episodes=20,
        validation=feature_set,
        progress=lambda *now: calls.append(now),
    )
    assert calls == sorted(calls)
    assert {total for _, total in calls} == {80}
    assert calls[-1] == (80, 80)


def test_objects_with_arrays_can_be_compared(feature_set):
    results = evaluate(*feature_set, "cspn", shot=1, episodes=5)
    episodes = sample_episodes(feature_set[1], episodes=5)
    comparison = compare({"one": feature_set}, "cspn", shot=[1], query=5, episodes=5)
    for one in (results[0], episodes, FeatureTable.of(*feature_set), comparison):
        assert one == one
        assert one != deepcopy(one)
        assert len({one, one}) == 1


def test_a_result_cannot_be_changed():
    (result,) = evaluate(*clusters(dtype=np.float32), ["cspn"], shot=1, episodes=2)
    with pytest.raises(FrozenInstanceError):
        result.shot = 5
