"""The demonstration: its training, its measurements, its page and its command."""

from __future__ import annotations

import math
import re
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from helpers.page import Reader, requests_and_scripts
from protorect import demo
from protorect.cli import main
from protorect.cli.demo import run
from protorect.core.statistics import Estimate
from protorect.demo import Plan, demo_page, learn, measure
from protorect.demo.learning import SIZE, TURNS, pack_digits
from protorect.demo.measure import ABLATION, Z
from protorect.demo.page import effect_text
from protorect.demo.plan import BASE, NOVEL, WAY, novel_labels
from protorect.errors import DataError, OptionError
from protorect.evaluation.evaluate import evaluate
from protorect.paper.published import SHOTS
from protorect.report.results import accuracy_text, difference_text

EPISODES, EPOCHS = 20, 2


def brief(plan: Plan) -> Plan:
    """The same plan with two small steps per epoch."""
    return plan._replace(recipe=replace(plan.recipe, steps_per_epoch=2, batch_size=16))


@pytest.fixture(scope="module")
def plan():
    return brief(Plan.of(EPISODES, EPOCHS, seed=3))


@pytest.fixture(scope="module")
def learned(plan):
    return learn(plan)


@pytest.fixture(scope="module")
def result(plan, learned):
    return measure(plan, learned)


@pytest.fixture(scope="module")
def html(result):
    return demo_page(result)


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return pack_digits(tmp_path_factory.mktemp("demo"))


def test_no_digit_is_trained_on_and_tested(packed):
    assert packed.splits == ("train", "test")
    trained, tested = packed.split("train"), packed.split("test")
    assert {int(name[0]) for name in trained.class_names} == set(BASE)
    assert len(trained.class_names) == TURNS * len(BASE)
    assert [int(name) for name in tested.class_names] == list(NOVEL)
    assert len(trained.labels) / TURNS + len(tested.labels) == len(load_digits().target)


def test_base_digits_are_turned(packed):
    trained = packed.split("train")
    names = np.array(trained.class_names)[trained.labels]
    upright = trained.images[names == "3 turned 0"].astype(float)
    turned = trained.images[names == "3 turned 90"].astype(float)
    again = np.rot90(upright, axes=(1, 2))  # enlarging rounds rows and columns one after the other
    np.testing.assert_allclose(again, turned, atol=32)


def test_features_pictures_and_labels_have_the_same_order(learned):
    digits = load_digits()
    rows = np.concatenate([np.flatnonzero(digits.target == digit) for digit in NOVEL])
    np.testing.assert_array_equal(learned.labels, digits.target[rows].astype(str))
    np.testing.assert_array_equal(learned.labels, novel_labels().astype(str))
    assert len(learned.features) == len(learned.pictures) == len(rows)
    middle = ((np.arange(8) + 0.5) * SIZE / 8).astype(int)  # of each enlarged gray value
    seen = learned.pictures[:, middle][:, :, middle].astype(float)
    alike = [
        np.corrcoef(a.ravel(), b.ravel())[0, 1]
        for a, b in zip(seen, digits.images[rows], strict=True)
    ]
    assert min(alike) > 0.95


def test_every_epoch_is_logged(learned):
    assert len(learned.epochs) == EPOCHS
    assert all(epoch.loss > 0 and 0 <= epoch.accuracy <= 100 for epoch in learned.epochs)


def test_the_plan_uses_its_seed_everywhere_and_rejects_invalid_numbers():
    plan = Plan.of(2, 3, seed=5)
    assert (plan.seed, plan.recipe.seed, plan.recipe.epochs, len(plan.episodes)) == (5, 5, 3, 2)
    assert plan.recipe.rates[-1] == (3, 0)
    for wrong in ({"episodes": 0}, {"epochs": 0}, {"seed": -1}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            Plan.of(**wrong)


def test_every_method_is_evaluated_on_the_same_episodes(result):
    assert [(r.method, r.shot) for r in result.ablation] == [
        (name, shot) for shot in SHOTS for name in ABLATION
    ]
    curves = [one for results in result.over_z.results.values() for one in results]
    every = [*result.ablation, *result.by_pixels.values(), *curves]
    assert {(one.way, one.query, one.episodes) for one in every} == {(5, 15, EPISODES)}


def test_pixels_are_compared_on_the_same_episodes(plan, learned, result):
    pixels = learned.pictures.reshape(len(learned.labels), -1).astype(np.float32)
    again = evaluate(pixels, learned.labels, "bd-c", shot=5, episodes=plan.episodes)[0]
    np.testing.assert_array_equal(result.by_pixels["bd-c", 5].per_episode, again.per_episode)
    features = evaluate(learned.features, learned.labels, "bd-c", shot=5, episodes=plan.episodes)
    np.testing.assert_array_equal(result.of("bd-c", 5).per_episode, features[0].per_episode)


def test_curves_start_at_cspn_and_pass_through_bd_i(result):
    for shot in SHOTS:
        for weighting in ("samples", "classes"):
            start = result.over_z.results[weighting, shot][Z.index(0)]
            np.testing.assert_array_equal(start.per_episode, result.of("cspn", shot).per_episode)
        default = result.over_z.results["samples", shot][Z.index(8)]
        np.testing.assert_array_equal(default.per_episode, result.of("bd-i", shot).per_episode)


def test_expected_accuracy_is_equation_25(result):
    moments, eta, expected = result.theory
    for shot in SHOTS:
        by_hand = [
            eta * moments.expectation
            / math.sqrt(moments.variance / (shot + z) + moments.expectation)
            for z in Z
        ]  # fmt: skip
        np.testing.assert_allclose(expected[shot], by_hand)


def test_the_shown_episode_has_the_accuracies_of_the_results(result):
    shown = result.shown
    assert len(set(shown.names)) == WAY
    for method, predicted in shown.predicted.items():
        right = 100 * (predicted == np.arange(WAY)[:, None]).mean()
        assert right == pytest.approx(result.of(method, 1).per_episode[shown.number])


def test_the_page_is_one_file(html):
    assert requests_and_scripts(html) == []
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_the_same_seed_gives_the_same_page(plan, html):
    assert demo_page(measure(plan, learn(plan))) == html


def test_another_seed_samples_other_episodes(plan):
    other = Plan.of(EPISODES, EPOCHS, seed=4)
    assert other.episodes.query.tolist() != plan.episodes.query.tolist()


def test_the_numbers_of_the_page_are_those_of_the_results(result, html):
    cells = [plain(cell) for cell in Reader(html).texts["td"]]
    expected = []
    for name in ABLATION:
        for shot in SHOTS:
            of_shot, first = result.of(name, shot), result.of("cspn", shot)
            difference = "" if name == "cspn" else difference_text(of_shot.minus(first))
            expected += [accuracy_text(of_shot), difference]
    for name in ABLATION:
        for shot in SHOTS:
            pixels = result.by_pixels[name, shot]
            expected += [
                accuracy_text(pixels),
                difference_text(result.of(name, shot).minus(pixels)),
            ]
    assert cells[: len(expected)] == expected
    for results in result.over_z.results.values():
        best = max(results, key=lambda one: one.accuracy)
        assert accuracy_text(best) in cells[len(expected) :]
        assert difference_text(best.minus(results[0])) in cells[len(expected) :]


def test_the_lead_and_the_details_match_the_run(result, html):
    read = Reader(html)
    lead = plain(read.texts["p"][0])
    assert accuracy_text(result.of("cspn", 1)) in lead
    assert accuracy_text(result.of("bd-cspn", 1)) in lead
    assert effect_text(result.of("bd-cspn", 1).minus(result.of("cspn", 1))) in lead
    assert accuracy_text(result.by_pixels["cspn", 1]) in lead
    assert effect_text(result.of("cspn", 1).minus(result.by_pixels["cspn", 1])) in lead
    details = dict(zip(read.texts["dt"], read.texts["dd"], strict=True))
    options = f"--episodes {EPISODES} --epochs {EPOCHS} --seed 3"
    assert details["command"] == f"protorect demo {options}"
    assert details["seed"].startswith("3,")
    assert "2 batches of 16 pictures per epoch" in details["training"]
    assert details["epochs"].startswith("2; learning rate 0.002 at epoch 0,")
    assert "torch" in details["versions"]


def test_the_page_shows_the_training(learned, html):
    last = learned.epochs[-1]
    captions = [plain(text) for text in Reader(html).texts["figcaption"]]
    assert any(f"In the last epoch: {last.loss:.3f}." in text for text in captions)
    assert any(f"In the last epoch: {last.accuracy:.1f} %." in text for text in captions)
    assert f"{learned.base_classes} classes with {learned.base_pictures} pictures" in plain(html)


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (Estimate(2.0, 0.5), "gains 2.00 ± 0.50 points"),
        (Estimate(-2.0, 0.5), "loses 2.00 ± 0.50 points"),
        (Estimate(0.4, 0.5), "shows no clear difference (+0.40 ± 0.50 points)"),
        (Estimate(-0.5, 0.5), "shows no clear difference (-0.50 ± 0.50 points)"),
        (Estimate(9.0, math.nan), "shows no clear difference (+9.00 points)"),
    ],
)
def test_a_gain_is_stated_only_where_the_interval_excludes_zero(difference, text):
    assert effect_text(difference) == text


def test_one_episode_is_enough_for_a_page(plan, learned):
    html = demo_page(measure(plan._replace(episodes=Plan.of(1).episodes), learned))
    assert "nan" not in " ".join(Reader(html).texts["td"])
    assert "shows no clear difference" in html


def test_progress_is_reported(plan, learned):
    calls = []
    measure(plan, learned, lambda done, total: calls.append((done, total)))
    total = 2 * EPISODES * len(SHOTS)  # on pixels and on features
    assert calls[-1] == (total, total)
    assert calls == sorted(calls)
    assert {of for _, of in calls} == {total}


def test_the_command_shows_the_training_the_tables_and_last_the_path(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "learn", lambda plan, *reports: learn(brief(plan), *reports))
    assert main(["demo", "--episodes", "3", "--epochs", "1", "--seed", "1"]) == 0
    shown = capsys.readouterr()
    assert "epoch 1/1: loss" in shown.err
    printed = shown.out.splitlines()
    assert printed[-1] == "protorect-demo.html"
    assert all(any(name in line for line in printed) for name in ABLATION)
    page = plain((tmp_path / "protorect-demo.html").read_text(encoding="utf-8"))
    assert "protorect demo --episodes 3 --epochs 1 --seed 1" in page
    numbers = re.findall(r"[+-]?\d+\.\d\d ± \d+\.\d\d", "\n".join(printed))
    assert len(numbers) == len(SHOTS) * (4 * len(ABLATION) - 1)
    assert all(number in page for number in numbers)
    assert [path.name for path in tmp_path.iterdir()] == ["protorect-demo.html"]


@pytest.mark.parametrize("option", ["--episodes", "--epochs"])
def test_an_invalid_number_is_an_error_before_the_work(option, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "learn", lambda *_: pytest.fail("the work was started"))
    assert main(["demo", option, "0"]) == 2
    assert option.strip("-") in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_is_an_error_before_the_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "learn", lambda *_: pytest.fail("the work was started"))
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert f"cannot write {tmp_path}: it is a folder" in capsys.readouterr().err


def test_a_path_below_a_file_is_a_data_error(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    options = Namespace(out=tmp_path / "file" / "page.html", episodes=2, epochs=1, seed=0)
    with pytest.raises(DataError, match="cannot write"):
        run(options)


def test_the_defaults_of_the_command_are_those_of_the_plan(capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--help"])
    shown = capsys.readouterr().out
    for name, default in (("episodes", demo.plan.EPISODES), ("epochs", demo.plan.EPOCHS)):
        assert re.search(rf"--{name} .*\({default}\)", shown)
