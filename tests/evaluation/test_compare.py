import numpy as np
import pytest
from scipy.stats import studentized_range

from helpers.svg import texts
from protorect.errors import OptionError
from protorect.evaluation.compare import Column, Comparison, compare
from protorect.evaluation.evaluate import Result, evaluate
from protorect.report.comparison import (
    accuracy_table,
    comparison_page,
    heat_map,
    summary_table,
)
from protorect.report.page import render_html


def result(method, accuracy, seconds=1.0, shot=1):
    per_episode = np.full(4, float(accuracy))
    predictions = np.zeros((4, 3), dtype=np.int32)
    return Result(method, 5, shot, 15, accuracy, 0.5, seconds, per_episode, predictions)


def test_a_result_is_shown_without_its_arrays():
    assert "per_episode" not in repr(result("a", 50))
    assert "predictions" not in repr(result("a", 50))


def comparison_of(*accuracies):
    """A comparison of methods a, b, c; each argument is the accuracies of one column."""
    columns = [
        Column(f"set {i}", "balanced", 1, tuple(map(result, "abc", row)))
        for i, row in enumerate(accuracies)
    ]
    return Comparison(("a", "b", "c"), tuple(columns))


def features(classes=8, each=30, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    return rng.normal(size=(classes, 16))[labels] + rng.normal(size=(len(labels), 16)), labels


def test_ranks_are_means_over_the_columns_and_ties_share():
    comparison = comparison_of((90, 80, 70), (60, 60, 50))
    np.testing.assert_allclose(comparison.ranks, [1.25, 1.75, 3])
    np.testing.assert_allclose(comparison.behind_best, [0, 10, 20])
    np.testing.assert_allclose(comparison.episodes_per_second, [4, 4, 4])


def test_accuracies_that_differ_by_rounding_only_are_ties():
    comparison = comparison_of((80.47999999999999, 80.48, 70))
    np.testing.assert_allclose(comparison.ranks, [1.5, 1.5, 3])
    assert "most accurate in 1 of them" in comparison_page(comparison, {}).lead


def test_columns_of_the_same_pictures_count_once():
    rows = [(3, 2, 1), (3, 2, 1), (1, 2, 3)]
    columns = [
        Column(name, "balanced", 1, tuple(map(result, "abc", row)), pictures)
        for name, row, pictures in zip(("x", "y", "z"), rows, ("x", "x", "z"), strict=True)
    ]
    comparison = Comparison(("a", "b", "c"), tuple(columns))
    assert comparison.sources == ["x", "z"]
    np.testing.assert_allclose(comparison.ranks, [2, 2, 2])
    alone = comparison_of(*rows[1:])
    assert comparison.critical_difference == alone.critical_difference


def test_files_made_from_the_same_pictures_are_recognized(tmp_path, monkeypatch):
    made_by = {"one.npz": {"pictures": "a"}, "two.npz": {"pictures": "a"}, "three.npz": {}}
    monkeypatch.setattr(
        "protorect.evaluation.compare.read_provenance", lambda path: made_by[path.name]
    )
    for name in made_by:
        np.savez(tmp_path / name, **dict(zip(("features", "labels"), features(12), strict=True)))
    tables = {name: tmp_path / name for name in made_by}
    tables["arrays"] = features(12)
    comparison = compare(tables, ["cspn", "bd-i"], shot=1, episodes=2)
    assert comparison.sources == ["one.npz", "three.npz", "arrays"]
    assert {column.source for column in comparison.columns if column.features == "two.npz"} == {
        "one.npz"
    }


def test_a_heat_map_has_every_accuracy_of_its_setting():
    svg = heat_map(comparison_of((90.1, 80.2, 70.3), (61.5, 62.5, 63.5)), "balanced")
    shown = texts(svg)
    for value in ("90.1", "80.2", "70.3", "61.5", "62.5", "63.5", "a", "set 1, 1-shot"):
        assert value in shown
    assert svg.count("font-weight: 700") == 2  # bold: the best of each column


def test_the_page_says_what_methods_were_tuned_on():
    comparison = compare({"toy": features(12)}, ["cspn", "label-propagation"], shot=1, episodes=3)
    page = render_html(comparison_page(comparison, {}))
    assert "validation classes of Omniglot" in page
    assert "values of its authors" in page


def test_critical_difference_is_that_of_nemenyi():
    # Demsar's table 5: q is 2.343 for three classifiers at 5 %.
    assert comparison_of(*[(3, 2, 1)] * 10).critical_difference == pytest.approx(
        2.343 * np.sqrt(3 * 4 / (6 * 10)), abs=1e-3
    )
    assert studentized_range.ppf(0.95, 3, np.inf) / np.sqrt(2) == pytest.approx(2.343, abs=1e-3)


def test_every_setting_uses_the_episodes_of_evaluate():
    tables = {"one": features(12), "two": features(12, seed=1)}
    comparison = compare(tables, ["cspn", "bd-cspn"], shot=[1, 2], query=5, episodes=20, seed=3)
    assert len(comparison.columns) == 2 * 3 * 2
    unequal = next(
        c for c in comparison.columns if c.features == "two" and "Dirichlet" in c.setting
    )
    alone = evaluate(
        *tables["two"],
        ["cspn", "bd-cspn"],
        shot=[1, 2],
        query=5,
        episodes=20,
        seed=3,
        dirichlet=2.0,
    )
    assert [r.accuracy for r in unequal.results] == [r.accuracy for r in alone[:2]]


def test_a_setting_that_a_feature_set_is_too_small_for_is_reported():
    comparison = compare({"small": features(7)}, ["cspn"], shot=[1], query=5, episodes=5)
    settings = [column.setting for column in comparison.columns]
    assert settings == ["balanced", "unbalanced (Dirichlet 2)"]
    reason = "small, 5 distractor classes: an episode needs 10 classes, there are 7."
    assert comparison.skipped == {"small": reason}
    assert reason in render_html(comparison_page(comparison, {}))


def test_a_set_too_small_for_any_episode_is_refused_by_name():
    with pytest.raises(OptionError, match=r"^tiny: "):
        compare({"tiny": features(3)}, ["cspn"], shot=[1], episodes=5)


def test_progress_counts_the_episodes_of_all_columns():
    seen = []
    tables = {"one": features(12), "two": features(12)}
    compare(tables, "cspn", shot=[1], episodes=5, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (30, 30)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_tables_hold_every_method_and_the_best_first():
    comparison = comparison_of((90, 95, 70), (60, 61, 50))
    assert [row[0] for row in summary_table(comparison).rows] == ["b", "a", "c"]
    table = accuracy_table(comparison, "set 1")
    assert table.header == ["method", "balanced, 1-shot"]
    assert table.rows[1] == ["b", "61.00 ± 0.50"]


def test_one_shot_need_not_be_in_a_list():
    found = compare({"one": features(12)}, "cspn", shot=1, query=5, episodes=5)
    assert [column.shot for column in found.columns] == [1, 1, 1]


@pytest.mark.parametrize(
    ("tables", "got"), [({}, "none"), ([features()], "list"), ("f.npz", "str"), (None, "NoneType")]
)
def test_tables_must_be_by_name(tables, got):
    with pytest.raises(OptionError, match=f"one feature set or more by name, .*; got {got}."):
        compare(tables)
