"""Projections, bias, bars and lines: well-formed, deterministic, and what they were given."""

from xml.etree import ElementTree

import numpy as np
import pytest

from helpers.svg import SVG, dashed, texts
from protorect.errors import DataError
from protorect.report.comparisons import Along, Bars, grouped_bars, lines_along
from protorect.report.projections import (
    ProjectedEpisode,
    ProjectedShift,
    bias_by_class,
    prototypes_in_episode,
    queries_shifted,
)

RNG = np.random.default_rng(0)
WAY = np.repeat(np.arange(5), 4)
QUERY, FIVE = RNG.normal(size=(20, 2)), RNG.normal(size=(5, 2))
ANGLES = np.array([20.0, 30.0, 41.0])
BARS = [Bars("a", [90, 80], [1, 2]), Bars("b", [95, 85], [1, 1])]
FLAT = ProjectedEpisode(FIVE[:, 0], WAY, FIVE, FIVE, FIVE)


def episode():
    return ProjectedEpisode(QUERY, WAY, FIVE, FIVE + 0.1, FIVE + 0.2)


def shift(moved=0.0):
    after = QUERY + np.where(WAY == 2, moved, 0.01)[:, None]
    return ProjectedShift(FIVE, QUERY, after, WAY, FIVE[:3])


PLOTS = {
    "episode": lambda: prototypes_in_episode(episode(), "Title"),
    "shift": lambda: queries_shifted(shift(1.0), "Title"),
    "bias": lambda: bias_by_class(ANGLES, [("a", ANGLES / 2), ("b", ANGLES / 3)], "Title"),
    "bars": lambda: grouped_bars(
        ["N' = 0", "N' = 1"],
        [Bars("a", [90, 80], [1, 2]), Bars("b", [95, 85], [1, 1])],
        "%",
        "Title",
    ),
    "lines": lambda: lines_along(
        [Along("a", [1, 10], [3, 2], [0.1, 0.2])], ("x", "y"), [("level", 2.5)], "Title"
    ),
}


@pytest.mark.parametrize("draw", PLOTS.values(), ids=PLOTS.keys())
def test_every_plot_is_one_svg_element_the_same_every_time_in_the_ink_of_the_page(draw):
    svg = draw()
    assert ElementTree.fromstring(svg).tag == SVG + "svg"
    assert draw() == svg
    assert "Title" in texts(svg)
    assert "currentColor" in svg
    assert "#000000" not in svg


def marks(svg: str) -> int:
    return len(list(ElementTree.fromstring(svg).iter(SVG + "use")))


def test_an_episode_has_a_mark_for_each_query_and_prototype():
    drawn = marks(PLOTS["episode"]())
    more = ProjectedEpisode(
        np.concatenate([QUERY, QUERY + 9]), np.tile(WAY, 2), FIVE, FIVE + 0.1, FIVE + 0.2
    )
    assert marks(prototypes_in_episode(more)) == drawn + 20
    assert [text for text in texts(PLOTS["episode"]()) if text != "Title"] == [
        "basic",
        "rectified",
        "expected",
        "query",
    ]


def test_the_class_that_moved_most_is_enlarged():
    near = queries_shifted(shift(0.02))
    far = queries_shifted(shift(2.0))
    assert near != far
    assert texts(far) == ["support", "before", "after", "means"]


def test_the_bias_plot_has_the_line_of_no_change_and_both_names():
    svg = PLOTS["bias"]()
    assert {"a", "b"} <= set(texts(svg))
    assert dashed(svg) == ["currentColor"]


def test_levels_are_named_and_dashed():
    svg = PLOTS["lines"]()
    assert "level" in texts(svg)
    assert dashed(svg) == ["currentColor"]


def test_bars_differ_without_colour():
    assert PLOTS["bars"]().count("<pattern") == 1  # the first is plain


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: prototypes_in_episode(ProjectedEpisode(FIVE[:, 0], WAY, FIVE, FIVE, FIVE)),
            "n, 2",
        ),
        (
            lambda: prototypes_in_episode(ProjectedEpisode(QUERY, WAY, *[np.ones((6, 2))] * 3)),
            "6 classes in one plot; 5 can be told apart",
        ),
        (lambda: bias_by_class(ANGLES, [("a", ANGLES[:2])]), r"a has angles \(2,\)"),
        (lambda: grouped_bars(["x"], [Bars("a", [1, 2], [1, 2])], "%"), "each of 1 groups"),
        (lambda: lines_along([Along("a", [1, 2], [1], [1])], ("x", "y")), "values of one length"),
    ],
)
def test_what_does_not_fit_is_an_error(draw, message):
    with pytest.raises(DataError, match=message):
        draw()
