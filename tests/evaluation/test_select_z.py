"""Z is selected on validation episodes and used on test episodes."""

import json

import numpy as np
import pytest

from helpers.clusters import clusters
from protorect import evaluate, method, sample_episodes
from protorect.cli import main
from protorect.evaluation.evaluate import choose_z, evaluate_chosen
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.select_z import Choice, chosen_options, has_free_z, z_text
from protorect.methods import chosen_methods


@pytest.fixture(scope="module")
def validation():
    return clusters(spread=2.0, seed=1)


def test_the_best_z_is_the_one_that_a_search_by_hand_finds(validation):
    names = ["bd-cspn", "bd-cspn-classes"]
    choices = choose_z(*validation, names, shot=[1, 3], query=6, episodes=40, seed=5)
    assert [(c.method, c.shot) for c in choices] == [(n, k) for k in (1, 3) for n in names]
    for choice in choices:
        by_hand = {}
        for z in [*range(7), "all"]:
            spelled = f"{choice.method}:z={z}"
            # both shots at once, so that the episodes are the same
            results = evaluate(*validation, spelled, shot=[1, 3], query=6, episodes=40, seed=5)
            by_hand[z] = next(r.accuracy for r in results if r.shot == choice.shot)
        np.testing.assert_allclose(choice.accuracy, list(by_hand.values()))
        best = max(by_hand, key=by_hand.get)  # the first of equals
        assert choice.z == (None if best == "all" else best)


def test_a_tie_goes_to_the_smallest():
    features, labels = clusters(spread=0.01)  # everything is right whatever Z is
    choices = choose_z(features, labels, ["bd-i"], shot=[1], query=3, episodes=5)
    assert choices[0].z == 0
    assert choices[0].accuracy.tolist() == [100] * 5  # Z = 0, 1, 2, 3 and no limit


def test_a_method_without_z_or_with_a_fixed_one_is_skipped(validation):
    free = {name: has_free_z(method(name)) for name in ("cspn", "bd-c", "bd-i", "bd-cspn:z=4")}
    assert free == {"cspn": False, "bd-c": False, "bd-i": True, "bd-cspn:z=4": False}
    assert has_free_z(method("bd-cspn:epsilon=5"))
    assert not has_free_z(method("bd-cspn:epsilon=5").with_options(z=3))
    assert choose_z(*validation, ["cspn", "bd-cspn:z=4"], shot=[1], episodes=5) == []


def test_test_episodes_use_the_choice_of_their_shot(feature_set):
    selected = [("bd-cspn", 1, 2), ("bd-cspn", 5, 2), ("bd-i", 5, 7)]
    choices = [Choice(name, shot, z, np.zeros(0)) for name, shot, z in selected]
    episodes = sample_episodes(feature_set[1], shot=5, episodes=30)
    names = ["cspn", "bd-cspn", "bd-i"]
    calls = []
    results = evaluate_chosen(
        FeatureTable.of(*feature_set),
        chosen_methods(names),
        choices,
        [1, 5],
        episodes,
        lambda *counts: calls.append(counts),
    )
    assert calls == sorted(calls)
    assert calls[-1] == (60, 60)
    assert [(r.method, r.shot) for r in results] == [(n, k) for k in (1, 5) for n in names]
    for shot, spelled in (
        (1, ["cspn", "bd-cspn:z=2", "bd-i"]),
        (5, ["cspn", "bd-cspn:z=2", "bd-i:z=7"]),
    ):
        expected = evaluate(*feature_set, spelled, shot=shot, episodes=episodes)
        at_shot = [r.accuracy for r in results if r.shot == shot]
        assert at_shot == [r.accuracy for r in expected]


def test_the_result_says_which_z_was_chosen(feature_set, validation):
    names = ["cspn", "bd-cspn", "bd-cspn:z=4"]
    results = evaluate(*feature_set, names, episodes=20, seed=3, validation=validation)
    choices = choose_z(*validation, names, shot=[1, 5], episodes=20, seed=3)
    for one in results:
        assert one.chosen == chosen_options(one.method, one.shot, choices)
        assert bool(one.chosen) == (one.method == "bd-cspn")
    spelled = [f"bd-cspn:z={z_text(choice.z)}" for choice in choices]
    for k, name in zip((1, 5), spelled, strict=True):
        episodes = sample_episodes(feature_set[1], shot=5, episodes=20, seed=3)
        (expected,) = evaluate(*feature_set, name, shot=k, episodes=episodes)
        (found,) = (one for one in results if (one.method, one.shot) == ("bd-cspn", k))
        assert (found.per_episode == expected.per_episode).all()


def test_the_command_selects_z_prints_and_saves_it(tmp_path, feature_file, validation, capsys):
    val, out = tmp_path / "val.npz", tmp_path / "o.json"
    np.savez(val, features=validation[0], labels=validation[1])
    line = f"evaluate {feature_file} --method cspn --method bd-cspn --episodes 20 --seed 3"
    assert main([*line.split(), "--validation", str(val), "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    choices = choose_z(*validation, ["bd-cspn"], shot=[1, 5], episodes=20, seed=3)
    assert document["settings"]["validation"] == {
        "features": "val.npz",
        "chosen": [{"method": "bd-cspn", "shot": c.shot, "z": z_text(c.z)} for c in choices],
    }
    shown = capsys.readouterr().out
    for choice in choices:
        assert f"bd-cspn, {choice.shot}-shot: Z = {z_text(choice.z)}\n" in shown
    assert [r["method"] for r in document["results"]] == ["cspn", "bd-cspn"] * 2


def test_missing_validation_features(tmp_path, feature_file, capsys):
    assert main(["evaluate", str(feature_file), "--validation", str(tmp_path / "no.npz")]) == 2
    assert "there is no file" in capsys.readouterr().err
