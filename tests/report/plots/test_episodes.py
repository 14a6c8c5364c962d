"""Plots of episodes show their samples and prototypes."""

from xml.etree import ElementTree

import numpy as np
import pytest

from helpers.svg import SVG, colors_of_dashed_lines, texts
from protorect.errors import DataError
from protorect.report.plots.episodes import (
    _zoom_window,
    bias_by_class,
    prototypes_in_episode,
    queries_shifted,
)

RNG = np.random.default_rng(0)
WAY = np.repeat(np.arange(5), 4)
QUERY, FIVE = RNG.normal(size=(20, 2)), RNG.normal(size=(5, 2))
ANGLES = np.array([20.0, 30.0, 41.0])


def shifted(distance):
    after = QUERY + np.where(WAY == 2, distance, 0.01)[:, None]
    return queries_shifted(FIVE, QUERY, after, WAY, FIVE[:3], "Title")


def marks(svg: str) -> int:
    return len(list(ElementTree.fromstring(svg).iter(SVG + "use")))


def test_an_episode_has_a_mark_for_each_query_and_prototype():
    svg = prototypes_in_episode(QUERY, WAY, FIVE, FIVE + 0.1, FIVE + 0.2, "Title")
    more = prototypes_in_episode(
        np.concatenate([QUERY, QUERY + 9]), np.tile(WAY, 2), FIVE, FIVE + 0.1, FIVE + 0.2, "Title"
    )
    assert marks(more) == marks(svg) + 20
    assert texts(svg) == ["Title", "basic", "rectified", "expected", "query"]


def test_the_shift_has_a_legend_and_its_mark_for_each_sample():
    assert texts(shifted(2.0)) == ["Title", "support", "before", "after", "means"]
    twice = 2  # the plot and the enlarged part
    assert marks(shifted(2.0)) >= twice * (len(FIVE) + 2 * len(QUERY) + 3)


def test_the_class_that_moved_most_is_enlarged():
    for most in range(5):
        after = QUERY + np.where(most == WAY, 2.0, 0.01)[:, None]
        samples = {"support": FIVE, "before": QUERY, "after": after}
        lower, upper = _zoom_window(samples, WAY)
        own = np.concatenate([QUERY[most == WAY], after[most == WAY], FIVE[[most]]])
        low, high = own.min(axis=0), own.max(axis=0)
        assert (lower < low).all()
        assert (upper > high).all()
        np.testing.assert_allclose(upper - lower, 1.16 * (high - low))


def test_the_bias_plot_has_the_diagonal_and_both_names():
    svg = bias_by_class(ANGLES, {"a": ANGLES / 2, "b": ANGLES / 3}, "Title")
    assert {"a", "b"} <= set(texts(svg))
    assert colors_of_dashed_lines(svg) == ["currentColor"]


@pytest.mark.parametrize(
    ("plot", "message"),
    [
        pytest.param(
            lambda: prototypes_in_episode(FIVE[:, 0], WAY, FIVE, FIVE, FIVE, ""),
            "n, 2",
            id="points",
        ),
        pytest.param(
            lambda: prototypes_in_episode(QUERY, WAY, *[np.ones((6, 2))] * 3, ""),
            "6 series or classes in one plot; at most 5",
            id="classes",
        ),
        pytest.param(
            lambda: bias_by_class(ANGLES, {"a": ANGLES[:2]}, ""), "'a' needs values", id="angles"
        ),
    ],
)
def test_data_that_cannot_be_plotted_is_an_error(plot, message):
    with pytest.raises(DataError, match=message):
        plot()
