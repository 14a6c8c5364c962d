"""The page of the demonstration."""

import math
import re

import numpy as np
import pytest
from benchmarks.browser import CHROMIUM, Browser

from helpers.demo import made_up_omniglot
from helpers.page import Reader, requests_and_scripts
from protorect.core.statistics import Estimate
from protorect.demo.omniglot import METHODS
from protorect.demo.page import demo_page, effect_text, sorting_accuracy
from protorect.demo.strips import episode_strips, folder_strips
from protorect.paper.published import SHOTS
from protorect.report.results import accuracy_text, difference_text


@pytest.fixture(scope="module")
def out(photographs):
    return photographs.folder.root.parents[1] / "page.html"


@pytest.fixture(scope="module")
def html(omniglot, photographs, out):
    return demo_page(omniglot, photographs, out)


@pytest.fixture(scope="module")
def read(html):
    return Reader(html)


def test_the_page_is_one_file_with_a_link_to_the_contact_sheet(html, read, out):
    (link,) = [one["href"] for one in read.all("a")]
    assert (out.parent / link).is_file()
    assert requests_and_scripts(html) == [f"a href={link}"]
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_the_link_is_that_from_the_file_behind_a_link(omniglot, photographs, tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "elsewhere" / "page.html")
    (tmp_path / "elsewhere").mkdir()
    read = Reader(demo_page(omniglot, photographs, tmp_path / "link.html"))
    (link,) = [one["href"] for one in read.all("a")]
    assert (tmp_path / "elsewhere" / link).is_file()


def test_the_page_is_deterministic(omniglot, photographs, html, out):
    assert demo_page(omniglot, photographs, out) == html


def test_the_tables_have_the_published_and_the_measured_numbers(omniglot, read):
    cells, results = read.texts["td"], omniglot.results
    row = ["97.40", accuracy_text(results["cspn", 1])]
    assert cells[:2] == row
    assert cells[6:8] == ["99.62", accuracy_text(results["bd-cspn", 1])]
    expected = []
    for name in METHODS:
        for shot in SHOTS:
            of_shot, first = results[name, shot], results["cspn", shot]
            expected += [
                accuracy_text(of_shot),
                "" if of_shot is first else difference_text(of_shot.minus(first)),
            ]
    assert cells[18:] == expected


def test_the_lead_and_the_highlights_state_the_results(omniglot, photographs, read):
    basic, rectified = (omniglot.results[name, 1] for name in ("cspn", "bd-cspn-classes"))
    lead = read.texts["p"][0]
    assert f"{accuracy_text(basic)} %" in lead
    assert f"{accuracy_text(rectified)} %, {effect_text(rectified.minus(basic))}" in lead
    right = round(photographs.evaluation.accuracy)
    assert read.texts["strong"] == [
        f"{basic.accuracy:.1f} → {rectified.accuracy:.1f} %",
        f"{right} of 100",
    ]
    assert "published 97.4 → 99.6 %" in read.texts["p"][2]
    assert f"as printed: {omniglot.results['bd-cspn', 1].accuracy:.1f} %" in read.texts["p"][2]


def test_the_shown_episode_has_the_most_corrected_queries(omniglot, read):
    wrong = {
        name: omniglot.results[name, 1].predictions != omniglot.episodes.query_way
        for name in ("cspn", "bd-cspn-classes")
    }
    corrected = wrong["cspn"] & ~wrong["bd-cspn-classes"]
    number = int(corrected.sum(axis=1).argmax())
    (text,) = [text for text in read.texts["p"] if "the most was corrected" in text]
    counts = [corrected[number].sum(), wrong["cspn"][number].sum(), 20, wrong["cspn"].sum()]
    counts += [corrected.sum(), (wrong["bd-cspn-classes"] & ~wrong["cspn"]).sum()]
    assert [int(count) for count in re.findall(r"\d+", text)] == counts
    marks = [item.get("class") for item in read.all("li")][: 5 * 16]
    assert marks.count("given") == 5
    assert marks.count("good") == corrected[number].sum()
    assert marks.count("bad") == wrong["bd-cspn-classes"][number].sum()


def test_every_query_of_an_episode_is_shown_in_the_row_of_its_class(omniglot):
    strips = episode_strips(omniglot, 2, "bd-cspn-classes")
    for way, strip in enumerate(strips):
        rows = [omniglot.episodes.support[2, way, 0]]
        rows += list(omniglot.episodes.query[2][omniglot.episodes.query_way[2] == way])
        np.testing.assert_array_equal(
            [255 - picture.pixels for picture in strip.pictures], omniglot.images[rows]
        )
    label = omniglot.labels[omniglot.episodes.support[2, 0, 0]]
    angle = f", rotated by {90 * (label % 4)}°" if label % 4 else ""
    assert strips[0].title == f"Class 1: Alphabet of {label}, character {label}{angle}"


def test_every_photograph_is_shown_and_wrong_ones_are_marked(photographs):
    pictures = [one for strip in folder_strips(photographs) for one in strip.pictures]
    marks = [one.mark for one in pictures]
    right = round(photographs.evaluation.accuracy)
    assert (marks.count("given"), marks.count(""), marks.count("bad")) == (30, right, 100 - right)
    estimate = sorting_accuracy(photographs.evaluation)
    assert estimate.mean == pytest.approx(right)
    assert 3 < estimate.ci95 < 9


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (Estimate(2.0, 0.5), "a gain of 2.00 ± 0.50 points"),
        (Estimate(-2.0, 0.5), "a loss of 2.00 ± 0.50 points"),
        (Estimate(0.4, 0.5), "no clear difference (+0.40 ± 0.50 points)"),
        (Estimate(9.0, math.nan), "no clear difference (+9.00 points)"),
    ],
)
def test_a_gain_is_stated_only_where_the_interval_excludes_zero(difference, text):
    assert effect_text(difference) == text


def test_one_episode_is_enough_for_a_page(photographs, out):
    read = Reader(demo_page(made_up_omniglot(episodes=1), photographs, out))
    assert "nan" not in " ".join(read.texts["td"])


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")
@pytest.mark.parametrize("width", [1200, 375])
def test_the_page_is_no_wider_than_the_window(width, html, out, tmp_path):
    out.write_text(html, encoding="utf-8")
    with Browser(tmp_path / "profile", width) as browser:
        browser.open(out)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("[...document.images].every(image => image.naturalWidth > 0)")
        assert browser.errors == []
