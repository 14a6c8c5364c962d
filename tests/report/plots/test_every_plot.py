"""Every plot is one deterministic <svg> element that can stand in any page."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from helpers.svg import SVG, texts
from protorect.evaluation.compare import Column, Comparison
from protorect.evaluation.evaluate import Result
from protorect.report.comparison import accuracy_against_speed, rank_diagram
from protorect.report.plots.accuracy import (
    Curve,
    accuracy_against_z,
    confusion_plot,
    curves_on_log_axis,
    grouped_bars,
)
from protorect.report.plots.episodes import (
    bias_by_class,
    prototypes_in_episode,
    queries_shifted,
)

WAY = np.repeat(np.arange(5), 4)
QUERY, FIVE = np.random.default_rng(0).normal(size=(2, 20, 2))
FIVE = FIVE[:5]
ANGLES = np.array([20.0, 30.0, 41.0])
CURVE = Curve("a", [1, 10], [3, 2], [0.1, 0.2], [3, 3])
RESULTS = [
    Result(name, 5, 1, 15, 60.0 + i, 1.0, 0.1, np.full(3, 60.0 + i), np.zeros((3, 75), np.int32))
    for i, name in enumerate(("cspn", "bd-c"))
]
COMPARISON = Comparison(("cspn", "bd-c"), (Column("set", "balanced", 1, tuple(RESULTS)),))

PLOTS = {
    "accuracy_against_z": lambda: accuracy_against_z([CURVE], "Title", (0, 5)),
    "curves_on_log_axis": lambda: curves_on_log_axis([CURVE], ("x", "y"), ("level", 2.5), "Title"),
    "grouped_bars": lambda: grouped_bars(
        ["N' = 0", "N' = 1"], {"a": ([90, 80], [1, 2]), "b": ([95, 85], [1, 1])}, "%", "Title"
    ),
    "prototypes_in_episode": lambda: prototypes_in_episode(
        QUERY, WAY, FIVE, FIVE + 0.1, FIVE + 0.2, "Title"
    ),
    "queries_shifted": lambda: queries_shifted(FIVE, QUERY, QUERY + 1, WAY, FIVE[:3], "Title"),
    "bias_by_class": lambda: bias_by_class(ANGLES, {"a": ANGLES / 2, "b": ANGLES / 3}, "Title"),
    "confusion_plot": lambda: confusion_plot(np.array([[5, 2], [0, 1]]), ["cat", "dog"]),
    "rank_diagram": lambda: rank_diagram(COMPARISON),
    "accuracy_against_speed": lambda: accuracy_against_speed(COMPARISON),
}
TITLED = (
    *("accuracy_against_z", "curves_on_log_axis", "grouped_bars"),
    *("prototypes_in_episode", "queries_shifted", "bias_by_class"),
)


@pytest.fixture(params=PLOTS)
def plot(request):
    return PLOTS[request.param]


@pytest.fixture(scope="module")
def svgs():
    return {name: plot() for name, plot in PLOTS.items()}


@pytest.mark.parametrize("name", PLOTS)
class TestEveryPlot:
    def test_is_one_svg_element(self, name, svgs):
        root = ElementTree.fromstring(svgs[name])
        assert root.tag == SVG + "svg"
        assert root.get("viewBox")

    def test_takes_its_color_from_the_page(self, name, svgs):
        svg = svgs[name]
        assert "currentColor" in svg
        assert "#000000" not in svg
        assert "#010203" not in svg

    def test_styles_nothing_but_itself(self, name, svgs):
        assert "<style" not in svgs[name]

    def test_makes_no_request(self, name, svgs):
        links = [
            value
            for node in ElementTree.fromstring(svgs[name]).iter()
            for attribute, value in node.attrib.items()
            if attribute.endswith(("href", "src"))
        ]
        assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)

    def test_refers_to_ids_that_exist_once(self, name, svgs):
        ids = ids_in(svgs[name])
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'(?:url\(|href=")#([^")]+)', svgs[name])) <= set(ids)


def test_rendering_is_deterministic_whatever_the_settings_of_matplotlib(plot):
    before, first = dict(mpl.rcParams), plot()
    assert dict(mpl.rcParams) == before
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.hashsalt": None}):
        assert plot() == first


@pytest.mark.parametrize("name", TITLED)
def test_the_title_is_shown(name, svgs):
    assert "Title" in texts(svgs[name])


def test_two_plots_share_no_id(svgs):
    ids = [one for svg in svgs.values() for one in ids_in(svg)]
    assert ids
    assert len(ids) == len(set(ids))


def test_pyplot_is_never_loaded():
    code = (
        "import sys, protorect.report.plots.accuracy; sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def ids_in(svg):
    return re.findall(r'\bid="([^"]+)"', svg)
