"""The page is one file, escapes what it is told and is made of the elements that fit."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.page import Reader, outside
from protorect.errors import DataError
from protorect.evaluation.evaluate import Result
from protorect.report.page import (
    Figure,
    Figures,
    Page,
    Section,
    Table,
    Terms,
    render,
    results_block,
)

SVG = '<svg viewBox="0 0 1 1"><path d="M 0 0"/></svg>'


def page(text="text", svg=SVG) -> Page:
    figure = Figure(svg, alt=text, caption=text)
    blocks = [text, Table(text, [text, text], [[text, text]]), Terms({text: text}), figure]
    return Page(text, text, [Section(text, [*blocks, Figures([figure, figure])])])


def test_the_page_needs_nothing_from_elsewhere():
    html = render(page())
    assert outside(html) == []
    assert "default-src 'none'" in html


def test_outside_would_find_something():
    assert outside('<img src="http://a/b.png">') == ["img src=http://a/b.png"]
    assert outside('<p onclick="x()"></p><script></script>') == ["p onclick", "script"]


def test_text_is_escaped_everywhere():
    evil = "<script>alert('1')</script>\"><img onerror=x src=y>`<b>`"
    html = render(page(evil))
    assert "<script" not in html
    assert "<b>" not in html
    assert outside(html) == []
    shown = evil.replace("`", "")
    assert Reader(html).texts["h1"] == [evil]
    assert Reader(html).texts["title"] == [evil]
    assert Reader(html).texts["p"] == [shown, shown]


def test_tables_have_captions_and_headers_with_scope():
    table = Table("of things", ["name", "one", "two"], [["a", "1", "2"], ["b", "3", "4"]])
    read = Reader(render(Page("t", "l", [Section("s", [table])])))
    assert read.texts["caption"] == ["of things"]
    assert [th["scope"] for th in read.all("th")] == ["col"] * 3 + ["row"] * 2
    assert read.texts["th"] == ["name", "one", "two", "a", "b"]
    assert read.texts["td"] == ["1", "2", "3", "4"]


def test_figures_have_alternative_text_and_captions():
    read = Reader(render(Page("t", "l", [Section("s", [Figure(SVG, "a line", "Fig.")])])))
    assert [div["aria-label"] for div in read.all("div") if div.get("role") == "img"] == ["a line"]
    assert read.texts["figcaption"] == ["Fig."]
    assert len(read.all("svg")) == 1


def test_code_in_backquotes_and_numbers_with_their_signs():
    html = render(Page("t", "`bd-i` gains 1.00 ± 0.10", [Section("s", [Terms({"`a`": "Z = 8"})])]))
    assert Reader(html).texts["code"] == ["bd-i", "a"]
    assert "1.00\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.10" in html
    assert "Z\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}8" in html


def test_the_page_says_language_width_and_both_colour_schemes():
    html = render(page())
    read = Reader(html)
    assert read.all("html") == [{"lang": "en"}]
    assert {meta.get("name") for meta in read.all("meta")} >= {"viewport", "color-scheme"}
    assert "prefers-color-scheme: dark" in html


def test_the_same_page_is_the_same_text():
    assert render(page()) == render(page())


def test_results_as_a_table_with_paired_differences():
    first, second = np.array([60.0, 70.0]), np.array([62.0, 74.0])
    none = np.zeros((2, 75), np.int32)
    results = [
        Result("cspn", 5, 1, 15, 65.0, 9.8, 0.1, first, none),
        Result("bd-i", 5, 1, 15, 68.0, 11.76, 0.1, second, none),
    ]
    table = results_block(results, "caption")
    assert table.header == ["method", "1-shot", "minus cspn"]
    assert table.rows == [["cspn", "65.00 ± 9.80", ""], ["bd-i", "68.00 ± 11.76", "+3.00 ± 1.96"]]


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(DataError, match="'sizes' has 2 columns, but a row of 3 cells: a, 1, 2"):
        Table("sizes", ["name", "one"], [["a", "1", "2"]])
