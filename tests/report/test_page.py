"""A page as HTML is one file and escapes text; the same page as Markdown."""

from __future__ import annotations

import numpy as np

from helpers.page import Reader, requests_and_scripts
from protorect.report.page import (
    Figure,
    Highlight,
    Link,
    Listing,
    Page,
    Picture,
    Section,
    Strip,
    render_html,
    render_markdown,
)
from protorect.report.table import Table

INK, COLORS = np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3), np.uint8)
SVG = '<svg viewBox="0 0 1 1"><path d="M 0 0"/></svg>'


def page(text="text", svg=SVG) -> Page:
    figure = Figure(svg, alt=text, caption=text)
    elements = [text, Table(text, [text, text], [[text, text]]), {text: text}, figure]
    elements.append(Strip(text, [Picture(INK, text, "good", text), Picture(INK, text)]))
    return Page(text, text, [Section(text, [*elements, [figure, figure]])])


def test_the_page_makes_no_request():
    html = render_html(page())
    assert requests_and_scripts(html) == []
    assert "default-src 'none'" in html


def test_requests_and_scripts_are_detected():
    assert requests_and_scripts('<img src="http://a/b.png">') == ["img src=http://a/b.png"]
    assert requests_and_scripts('<p onclick="x()"></p><script></script>') == ["p onclick", "script"]


def test_text_is_escaped_everywhere():
    evil = "<script>alert('1')</script>\"><img onerror=x src=y>`<b>`"
    html = render_html(page(evil))
    assert "<script" not in html
    assert "<b>" not in html
    assert requests_and_scripts(html) == []
    shown = evil.replace("`", "")
    assert Reader(html).texts["h1"] == [evil]
    assert Reader(html).texts["title"] == [evil]
    assert Reader(html).texts["p"] == [shown, shown]


def test_tables_have_captions_and_headers_with_scope():
    table = Table("of things", ["name", "one", "two"], [["a", "1", "2"], ["b", "3", "4"]])
    read = Reader(render_html(Page("t", "l", [Section("s", [table])])))
    assert read.texts["caption"] == ["of things"]
    assert [th["scope"] for th in read.all("th")] == ["col"] * 3 + ["row"] * 2
    assert read.texts["th"] == ["name", "one", "two", "a", "b"]
    assert read.texts["td"] == ["1", "2", "3", "4"]


def test_figures_have_alternative_text_and_captions():
    read = Reader(render_html(Page("t", "l", [Section("s", [Figure(SVG, "a line", "Fig.")])])))
    assert [div["aria-label"] for div in read.all("div") if div.get("role") == "img"] == ["a line"]
    assert read.texts["figcaption"] == ["Fig."]
    assert len(read.all("svg")) == 1


def test_code_in_backquotes_and_numbers_with_their_signs():
    html = render_html(Page("t", "`bd-i` gains 1.00 ± 0.10", [Section("s", [{"`a`": "Z = 8"}])]))
    assert Reader(html).texts["code"] == ["bd-i", "a"]
    assert "1.00\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.10" in html
    assert "Z\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}8" in html


def test_the_page_declares_language_width_and_both_color_schemes():
    html = render_html(page())
    read = Reader(html)
    assert read.all("html") == [{"lang": "en"}]
    assert {meta.get("name") for meta in read.all("meta")} >= {"viewport", "color-scheme"}
    assert "prefers-color-scheme: dark" in html


def test_rendering_is_deterministic():
    assert render_html(page()) == render_html(page())


ELEMENTS = [
    "text",
    Table("of things", ["a", "b"], [["x | y", "1"]]),
    {"seed": "0"},
    Listing("Run:", ["protorect demo", "ls <folder>"]),
    Strip("strip", [Picture(INK, "one"), Picture(INK, "two")]),
    Link("all", "a/b.html"),
    [Figure(SVG, "a line", "Fig. 1")] * 2,
    Figure(SVG, "a line", "Fig. 1"),
]


def test_every_element_as_markdown():
    text, figures = render_markdown(
        Page("Title", "lead", [Section("part", ELEMENTS)]), "figures/page"
    )
    assert text.split("\n\n")[:11] == [
        "# Title",
        "lead",
        "## part",
        "text",
        "| a | b |\n| --- | ---: |\n| x \\| y | 1 |",
        "*of things*",
        "- **seed**: 0",
        "Run:",
        "```text\nprotorect demo\nls <folder>\n```",
        "**strip**: one, two",
        "[all](a/b.html)",
    ]
    assert text.endswith("![a line](figures/page-3.svg)\n\n*Fig. 1*\n")
    assert list(figures) == [f"figures/page-{number}.svg" for number in (1, 2, 3)]
    assert all(svg.startswith('<svg color="#767676" ') for svg in figures.values())


def test_a_listing_is_folded_and_escaped_in_html():
    html = render_html(Page("t", "l", [Section("s", ELEMENTS[3:4])]))
    assert "<summary>Run:</summary>" in html
    assert "protorect demo\nls &lt;folder&gt;</pre>" in html


def test_a_strip_embeds_its_pictures_with_mark_note_and_alternative_text():
    pictures = [Picture(INK, "an a", "given"), Picture(COLORS, "a pear", "bad", "is <b>")]
    read = Reader(render_html(Page("t", "l", [Section("s", [Strip("Class 1", pictures)])])))
    assert read.texts["h3"] == ["Class 1"]
    assert [item.get("class") for item in read.all("li")] == ["given", "bad"]
    assert [image["alt"] for image in read.all("img")] == ["an a", "a pear"]
    kinds = [image["src"].partition(";")[0] for image in read.all("img")]
    assert kinds == ["data:image/png", "data:image/jpeg"]
    assert "is <b>" in read.texts["span"]


def test_links_and_highlights():
    highlights = [Highlight("98 → 99 %", "of drawings", "published < 99")]
    page = Page("t", "l", [Section("s", [Link("Open", "a%20b/index.html")])], highlights)
    read = Reader(render_html(page))
    assert [link["href"] for link in read.all("a")] == ["a%20b/index.html"]
    assert read.texts["strong"] == ["98 → 99 %"]
    assert read.texts["p"][1:3] == ["of drawings", "published < 99"]


def test_the_number_of_shots_is_not_broken_in_a_header():
    table = Table("c", ["<i>", "5-shot published"], [["a", "1"]])
    html = render_html(Page("t", "l", [Section("s", [table])]))
    assert "<span>5-shot</span> published" in html
    assert Reader(html).texts["th"][:2] == ["<i>", "5-shot published"]
