"""One HTML page that holds all it needs: text, tables and figures, and no request to anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from jinja2 import Template
from markupsafe import Markup, escape

from protorect.errors import DataError
from protorect.evaluation.evaluate import Result
from protorect.report.tables import results_grid
from protorect.report.templates import templates_of


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first cell of a row names it, the others are numbers."""

    kind: ClassVar[str] = "table"
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise DataError(
                    f"table {self.caption!r} has {len(self.header)} columns, "
                    f"but a row of {len(row)} cells: {', '.join(row)}."
                )


@dataclass(frozen=True)
class Figure:
    """A picture.

    Parameters
    ----------
    svg
        The <svg> element, as `protorect.report.plots` gives it. It goes into the page unescaped.
    alt
        What it shows, for those who cannot see it.
    caption
        Below it.
    """

    kind: ClassVar[str] = "figure"
    svg: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Figures:
    """Figures side by side where the page is wide enough, else one below the other."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Terms:
    """Names and what they mean, or settings and their values."""

    kind: ClassVar[str] = "terms"
    terms: Mapping[str, str]


@dataclass(frozen=True)
class Listing:
    """Lines to be typed as they are, such as commands, folded away below a sentence."""

    kind: ClassVar[str] = "listing"
    caption: str
    lines: Sequence[str]


Block = str | Table | Figure | Figures | Terms | Listing


@dataclass(frozen=True)
class Section:
    """A heading and what is below it; a string is a paragraph, with `code` in backquotes."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A title, a sentence or two for who reads no further, and sections."""

    title: str
    lead: str
    sections: Sequence[Section]


def results_block(results: Sequence[Result], caption: str) -> Table:
    """`results_grid` for the page."""
    return Table(caption, *results_grid(results))


def render(page: Page) -> str:
    """The page as HTML. All text is escaped; figures are taken as they are."""
    return _template().render(page=page)


@cache
def _template() -> Template:
    templates = templates_of("report")
    templates.filters |= {"prose": _prose, "cell": _cell}
    return templates.get_template("page.html.jinja")


def _prose(text: str) -> Markup:
    """Text escaped, `code` set as code, and no line broken beside = or ±."""
    joined = re.sub(" ([=±]) ", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", joined))


def _cell(text: str) -> Markup:
    """As in a paragraph, but a narrow column may put an interval on a line of its own."""
    return Markup(_prose(text).replace("\N{NO-BREAK SPACE}±", " ±"))
