"""The page of the demonstration."""

import math
import re

import pytest

from helpers.page import Reader, requests_and_scripts
from protorect.core.statistics import Estimate
from protorect.demo.digits import Plan, learn, measure
from protorect.demo.page import demo_page, effect_text
from protorect.methods import PAPER
from protorect.paper.published import SHOTS
from protorect.report.results import accuracy_text, difference_text


@pytest.fixture(scope="module")
def html(result):
    return demo_page(result)


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_is_one_file(html):
    assert requests_and_scripts(html) == []
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_the_same_seed_gives_the_same_page(plan, html):
    assert demo_page(measure(plan, learn(plan))) == html


def test_the_numbers_of_the_page_are_those_of_the_results(result, html):
    cells = [plain(cell) for cell in Reader(html).texts["td"]]
    expected = []
    for name in PAPER:
        for shot in SHOTS:
            of_shot, first = result.by_network[name, shot], result.by_network["cspn", shot]
            difference = "" if name == "cspn" else difference_text(of_shot.minus(first))
            expected += [accuracy_text(of_shot), difference]
    for name in PAPER:
        for shot in SHOTS:
            pixels = result.by_pixels[name, shot]
            expected += [
                accuracy_text(pixels),
                difference_text(result.by_network[name, shot].minus(pixels)),
            ]
    assert cells[: len(expected)] == expected
    for results in result.over_z.values():
        best = max(results, key=lambda one: one.accuracy)
        assert accuracy_text(best) in cells[len(expected) :]
        assert difference_text(best.minus(results[0])) in cells[len(expected) :]


def test_the_lead_and_the_details_match_the_run(result, html):
    read = Reader(html)
    lead = plain(read.texts["p"][0])
    assert accuracy_text(result.by_network["cspn", 1]) in lead
    assert accuracy_text(result.by_network["bd-cspn", 1]) in lead
    assert effect_text(result.by_network["bd-cspn", 1].minus(result.by_network["cspn", 1])) in lead
    assert accuracy_text(result.by_pixels["cspn", 1]) in lead
    assert effect_text(result.by_network["cspn", 1].minus(result.by_pixels["cspn", 1])) in lead
    details = dict(zip(read.texts["dt"], read.texts["dd"], strict=True))
    assert details["command"] == "protorect demo --episodes 20 --epochs 2 --seed 3"
    assert "2 batches of 16 pictures per epoch" in details["training"]
    assert details["epochs"].startswith("2; learning rate 0.002 at epoch 0,")
    assert "torch" in details["versions"]


def test_the_page_shows_the_training(learned, html):
    captions = [plain(text) for text in Reader(html).texts["figcaption"]]
    for values in (learned.losses, learned.accuracies):
        assert any(f"in the last epoch: {values[-1]:.3g}." in text for text in captions)
    assert f"{learned.base_classes} classes with {learned.base_pictures} pictures" in plain(html)


def test_the_shown_episode_has_the_accuracies_of_the_results(result, html):
    captions = " ".join(plain(text) for text in Reader(html).texts["figcaption"])
    (number,) = re.findall(r"one row per class: number (\d+) of 20", plain(html))
    for name in ("cspn", "bd-cspn"):
        accuracy = result.by_network[name, 1].per_episode[int(number) - 1]
        assert f"({name.upper()}): {round(0.75 * accuracy)} of 75 correct" in captions


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
    html = demo_page(measure(plan._replace(episodes=Plan.of(1, 1).episodes), learned))
    assert "nan" not in " ".join(Reader(html).texts["td"])
    assert "shows no clear difference" in html
