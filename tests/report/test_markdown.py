from protorect.report.markdown import render_markdown
from protorect.report.page import Figure, Figures, Listing, Page, Section, Table, Terms, render

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path stroke="currentColor"/></svg>'
FIGURE = Figure(SVG, "a line", "Fig. 1")
BLOCKS = [
    "text",
    Table("of things", ["a", "b"], [["x | y", "1"]]),
    Terms({"seed": "0"}),
    Listing("Run:", ["protorect demo", "ls <folder>"]),
    Figures([FIGURE, FIGURE]),
    FIGURE,
]
PAGE = Page("Title", "lead", [Section("part", BLOCKS)])


def test_a_page_as_markdown():
    text, figures = render_markdown(PAGE, "figures/page")
    assert text.split("\n\n")[:9] == [
        "# Title",
        "lead",
        "## part",
        "text",
        "| a | b |\n| --- | ---: |\n| x \\| y | 1 |",
        "*of things*",
        "- **seed**: 0",
        "Run:",
        "```text\nprotorect demo\nls <folder>\n```",
    ]
    assert text.endswith("![a line](figures/page-3.svg)\n\n*Fig. 1*\n")
    assert list(figures) == [f"figures/page-{number}.svg" for number in (1, 2, 3)]


def test_figures_in_files_have_an_ink_of_their_own():
    _, figures = render_markdown(PAGE, "p")
    assert figures["p-1.svg"].startswith('<svg color="#767676" ')


def test_a_listing_is_folded_and_escaped_on_the_page():
    html = render(Page("t", "l", [Section("s", BLOCKS[3:4])]))
    assert "<summary>Run:</summary>" in html
    assert "protorect demo\nls &lt;folder&gt;</pre>" in html
