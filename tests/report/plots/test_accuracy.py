"""Plots of accuracies show the values of their curves, bars and dots."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from helpers.svg import SVG, colors_of_dashed_lines, texts
from protorect.errors import DataError
from protorect.report.plots.accuracy import (
    Curve,
    accuracy_against_z,
    accuracy_limits,
    confusion_plot,
    curves_on_log_axis,
    grouped_bars,
)
from protorect.report.style import BLUE, SERIES, VERMILLION


def curve(label="1-shot", height=70.0, expected=True, ci95=1.0) -> Curve:
    z = np.arange(6)
    return Curve(label, z, height + z, np.full(6, ci95), height + 0.5 * z if expected else None)


def markers(svg: str, color: str) -> int:
    """How often a marker of this color is placed."""
    uses = ElementTree.fromstring(svg).iter(SVG + "use")
    return sum(color in use.get("style", "") for use in uses)


def test_curves_are_labelled_and_their_theory_is_dashed_in_the_same_color():
    svg = accuracy_against_z([curve(), curve("5-shot", 85.0)], "Title", (65, 95))
    assert {"1-shot", "5-shot", "Title", "theory, one η"} <= set(texts(svg))
    assert "theory, η per shot" not in texts(svg)
    assert colors_of_dashed_lines(svg) == [BLUE, VERMILLION, "currentColor"]  # the last: legend


def test_a_theory_of_its_own_is_a_second_line():
    own = replace(curve(), expected_own=np.arange(6) + 69.0)
    svg = accuracy_against_z([own], "Title", (65, 95))
    assert {"theory, one η", "theory, η per shot"} <= set(texts(svg))
    assert colors_of_dashed_lines(svg) == [BLUE, BLUE, "currentColor", "currentColor"]


def test_without_theory_there_is_no_dashed_line_and_no_legend_for_it():
    svg = accuracy_against_z([curve(expected=False)], "Title", (65, 80))
    assert colors_of_dashed_lines(svg) == []
    assert not any("theory" in text for text in texts(svg))


def test_labels_of_lines_that_meet_are_moved_apart():
    root = ElementTree.fromstring(accuracy_against_z([curve("here"), curve("there")], "", (65, 80)))
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


def test_a_result_of_one_episode_is_plotted_without_interval():
    alone = accuracy_against_z([curve(expected=False, ci95=float("nan"))], "", (65, 80))
    assert markers(alone, BLUE) == 6
    assert "nan" not in alone.lower()


def test_limits_contain_bands_and_theory():
    assert accuracy_limits([curve(height=70.0), curve(height=91.0)]) == (65, 100)
    assert accuracy_limits([Curve("a", [0], [70.0], [0.0])]) == (70, 75)


def test_the_axis_ends_at_100_where_the_theory_does_not():
    beyond = Curve("a", [0, 1], [98.0, 99.0], [0.1, 0.1], [91.0, 110.0])
    assert accuracy_limits([beyond]) == (90, 100)
    assert accuracy_limits([Curve("a", [0], [100.0], [0.0])]) == (95, 100)


def test_the_level_is_named_and_dashed():
    line = Curve("a", [1, 10], [3, 2], [0.1, 0.2])
    svg = curves_on_log_axis([line], ("x", "y"), ("one", 2.5), "Title")
    assert "one" in texts(svg)
    assert colors_of_dashed_lines(svg) == ["currentColor"]


def test_bars_differ_without_color():
    svg = grouped_bars(["x", "y"], {"a": ([90, 80], [1, 2]), "b": ([95, 85], [1, 1])}, "%", "Title")
    assert svg.count("<pattern") == 1  # the first is plain


def test_a_confusion_matrix_has_every_name_and_count():
    svg = confusion_plot(np.array([[5, 2], [0, 7]]), ["cat", "dog"])
    assert {"cat", "dog", "5", "2", "7", "true class"} <= set(texts(svg))


@pytest.mark.parametrize(
    ("plot", "message"),
    [
        pytest.param(
            lambda: accuracy_limits([Curve("a", [0, 1], [50.0], [1.0])]),
            "'a' needs values of one length",
            id="lengths",
        ),
        pytest.param(
            lambda: accuracy_limits([Curve("a", [], [], [])]), "'a' needs values", id="empty"
        ),
        pytest.param(
            lambda: accuracy_against_z([curve()] * (len(SERIES) + 1), "", (65, 80)),
            "6 series or classes in one plot; at most 5",
            id="series",
        ),
        pytest.param(
            lambda: curves_on_log_axis([Curve("a", [1, 2], [1], [1])], ("x", "y"), ("one", 1), ""),
            "values of one length",
            id="log axis",
        ),
        pytest.param(
            lambda: grouped_bars(["x"], {"a": ([1, 2], [1, 2])}, "%", ""),
            r"'a' needs values of one length, got shapes \[\(1,\), \(2,\), \(2,\)\]",
            id="bars",
        ),
    ],
)
def test_data_that_cannot_be_plotted_is_an_error(plot, message):
    with pytest.raises(DataError, match=message):
        plot()


def test_a_legend_of_two_theories_leaves_the_axes_their_width():
    both = Curve("1-shot", [0, 1], [70.0, 71.0], [1.0, 1.0], [69.0, 72.0], [70.0, 73.0])
    svg = accuracy_against_z([both], "Title", (65, 75))
    assert "theory, η per shot" in texts(svg)
    root = ElementTree.fromstring(svg)
    width = float(root.get("viewBox").split()[2])
    places = [re.findall(r"[ML] ([\d.]+)", one.get("d", "")) for one in root.iter(f"{SVG}path")]
    widest = max(float(xs[1]) - float(xs[0]) for xs in places if len(xs) == 2)  # a line of the grid
    assert widest > 0.6 * width
