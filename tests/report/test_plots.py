"""Plots are well-formed, deterministic SVG that shows what it was given."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from helpers.svg import SVG, dashed, texts
from protorect.errors import DataError
from protorect.evaluation.evaluate import Result
from protorect.report.drawing import BLUE, SERIES, VERMILLION
from protorect.report.plots import (
    ZCurve,
    accuracy_against_z,
    accuracy_dots,
    accuracy_limits,
    episode_pictures,
    value_by_epoch,
)


def result(method="cspn", shot=1, per_episode=(60.0, 70.0, 80.0)) -> Result:
    values = np.array(per_episode)
    return Result(method, 5, shot, 15, values.mean(), 2.5, 0.1, values, np.zeros((3, 75), np.int32))


def curve(label="1-shot", height=70.0, expected=True, ci95=1.0) -> ZCurve:
    z = np.arange(6)
    return ZCurve(label, z, height + z, np.full(6, ci95), height + 0.5 * z if expected else None)


def episode(name="a") -> str:
    predicted = np.array([[0, 0, 1], [1, 1, 1]])
    pictures = np.linspace(0, 16, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4)
    return episode_pictures(pictures[:, 0], pictures, predicted, [name, "b"], "An episode")


PLOTS = {
    "against z": lambda: accuracy_against_z([curve(), curve("5-shot", 85.0)], "Title"),
    "dots": lambda: accuracy_dots([result(), result("bd-c"), result(shot=5), result("bd-c", 5)]),
    "by epoch": lambda: value_by_epoch([1.5, 0.5, 0.25], "loss", "Title"),
    "episode": episode,
}


@pytest.mark.parametrize("draw", PLOTS.values(), ids=PLOTS.keys())
class TestEveryPlot:
    def test_is_one_svg_element(self, draw):
        root = ElementTree.fromstring(draw())
        assert root.tag == SVG + "svg"
        assert root.get("viewBox")

    def test_is_the_same_every_time(self, draw):
        assert draw() == draw()

    def test_takes_its_ink_from_the_page(self, draw):
        svg = draw()
        assert "currentColor" in svg
        assert "#000000" not in svg
        assert not re.search(r"(fill|stroke): *(black|white|#fff)", svg)

    def test_styles_nothing_but_itself(self, draw):
        assert "<style" not in draw()

    def test_asks_for_nothing_from_elsewhere(self, draw):
        links = [
            value
            for node in ElementTree.fromstring(draw()).iter()
            for name, value in node.attrib.items()
            if name.endswith(("href", "src"))
        ]
        assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)

    def test_links_inside_lead_somewhere(self, draw):
        svg = draw()
        ids = re.findall(r'\bid="([^"]+)"', svg)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'(?:url\(|href=")#([^")]+)', svg)) <= set(ids)

    def test_leaves_the_settings_of_matplotlib_alone(self, draw):
        before = dict(mpl.rcParams)
        draw()
        assert dict(mpl.rcParams) == before

    def test_does_not_follow_the_settings_of_matplotlib(self, draw):
        usual = draw()
        with mpl.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.hashsalt": None}):
            assert draw() == usual


def test_two_plots_share_no_id():
    first, second = (
        set(re.findall(r'\bid="([^"]+)"', draw())) for draw in list(PLOTS.values())[:2]
    )
    assert not first & second


def test_pyplot_is_never_loaded():
    code = "import sys, protorect.report.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_curves_are_named_and_their_theory_is_dashed_in_the_same_colour():
    svg = accuracy_against_z([curve(), curve("5-shot", 85.0)], "Title")
    assert {"1-shot", "5-shot", "Title", "theory"} <= set(texts(svg))
    assert dashed(svg) == [BLUE, VERMILLION, "currentColor"]  # the last is the legend's


def test_without_theory_there_is_no_dashed_line_and_no_legend_for_it():
    svg = accuracy_against_z([curve(expected=False)])
    assert dashed(svg) == []
    assert "theory" not in texts(svg)


def test_labels_of_lines_that_meet_are_moved_apart():
    svg = accuracy_against_z([curve("here"), curve("there")])
    root = ElementTree.fromstring(svg)
    heights = [
        float(
            re.findall(r"[-\d.]+", node.get("transform", ""))[-1]
            if node.get("y") is None
            else node.get("y")
        )
        for node in root.iter(SVG + "text")
        if "".join(node.itertext()).strip() in ("here", "there")
    ]
    assert len(heights) == 2
    assert abs(heights[0] - heights[1]) > 11  # a line of text


def test_a_curve_of_results_has_their_accuracies():
    z, accuracy, ci95 = ZCurve.of("a", [0, 1], [result(), result(per_episode=(90.0,) * 3)]).arrays()
    assert z.tolist() == [0, 1]
    assert accuracy.tolist() == [70, 90]
    assert ci95.tolist() == [2.5, 2.5]


def test_a_single_episode_has_no_interval_and_is_drawn():
    ElementTree.fromstring(accuracy_against_z([curve(ci95=float("nan"))]))
    lone = Result(
        "cspn", 5, 1, 15, 60.0, float("nan"), 0.1, np.array([60.0]), np.zeros((1, 75), np.int32)
    )
    ElementTree.fromstring(accuracy_dots([lone]))


def test_limits_hold_bands_and_theory():
    assert accuracy_limits([curve(height=70.0), curve(height=91.0)]) == (65, 100)
    assert accuracy_limits([ZCurve("a", [0], [70.0], [0.0])]) == (70, 75)


def test_dots_name_every_method_and_shot():
    assert {"cspn", "bd-c", "1-shot", "5-shot"} <= set(texts(PLOTS["dots"]()))


def test_epochs_are_whole_numbers_from_one_even_if_there_is_one():
    assert "1" in texts(value_by_epoch([0.5], "loss"))
    many = texts(value_by_epoch([1.5, 0.5, 0.25], "loss", "Title"))
    assert {"1", "2", "3", "epoch", "loss", "Title"} <= set(many)
    assert not {"0.5", "1.5", "2.5"} & set(many[: many.index("epoch")])


def test_an_episode_marks_the_wrong_ones_only():
    assert sorted(texts(episode())) == sorted(
        [
            *("An episode", "support", "queries, and what they were taken for"),
            *("a", "b"),  # of the support
            *("a", "a", "b?", "b", "b", "b"),
        ]
    )
    assert len(re.findall("<image", episode())) == 8


def test_pictures_share_one_scale_of_grey():
    dark_and_light = np.array([np.zeros((4, 4)), np.ones((4, 4))])
    svg = episode_pictures(dark_and_light, dark_and_light[:, None], np.array([[0], [1]]), "ab")
    assert len(set(re.findall('data:image/png;base64,[^"]+', svg))) == 2


def test_colour_pictures_are_drawn():
    pictures = np.random.default_rng(0).random((2, 1, 4, 4, 3))
    ElementTree.fromstring(
        episode_pictures(pictures[:, 0], pictures, np.array([[0], [1]]), ["a", "b"])
    )


def test_a_name_is_text_and_never_markup():
    svg = episode("<script>alert(1)</script>")
    assert "<script" not in svg
    assert "<script>alert(1)</script>" in texts(svg)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: accuracy_against_z([]), "no curve"),
        (lambda: accuracy_dots([]), "no result"),
        (lambda: value_by_epoch([], "loss"), "no epoch"),
        (lambda: accuracy_against_z([ZCurve("a", [0, 1], [50.0], [1.0])]), "'a' needs values"),
        (lambda: accuracy_against_z([ZCurve("a", [], [], [])]), "'a' needs values"),
        (lambda: accuracy_against_z([curve()] * (len(SERIES) + 1)), "up to 4"),
        (
            lambda: episode_pictures(
                np.zeros((2, 4, 4)), np.zeros((3, 1, 4, 4)), np.zeros((3, 1), int), "abc"
            ),
            "as many pictures",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, message):
    with pytest.raises(DataError, match=message):
        draw()
