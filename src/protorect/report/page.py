"""A page of text, tables and figures, as one HTML file without requests, or as Markdown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from protorect.report.style import standalone_svg
from protorect.report.table import Table, markdown_table


@dataclass(frozen=True)
class Figure:
    """A plot: its <svg> element, which goes into a page unescaped, alternative text, caption."""

    svg: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Listing:
    """Lines of code, such as commands, folded away below a caption."""

    caption: str
    lines: Sequence[str]


Element = str | Table | Figure | list[Figure] | dict[str, str] | Listing
"""What a section holds. A string is a paragraph, with `code` in backquotes; a list of figures is
shown side by side where the page is wide enough; a dict is a list of terms and their meanings."""


@dataclass(frozen=True)
class Section:
    """A heading and the elements below it."""

    title: str
    elements: Sequence[Element]


@dataclass(frozen=True)
class Page:
    """A title, one or two sentences with the main result, and sections."""

    title: str
    lead: str
    sections: Sequence[Section]


def render_html(page: Page) -> str:
    """The page as HTML. All text is escaped; figures are embedded as they are."""
    template = load_template("report", "page.html.jinja", prose=_prose, cell=_cell)
    return template.render(page=page)


def render_markdown(page: Page, stem: str) -> tuple[str, dict[str, str]]:
    """The page as Markdown, and its figures: file names that begin with `stem`, and SVG text."""
    figures: dict[str, str] = {}
    parts = [f"# {page.title}", page.lead]
    for section in page.sections:
        parts.append(f"## {section.title}")
        parts += [_markdown(element, stem, figures) for element in section.elements]
    return "\n\n".join(parts) + "\n", figures


def load_template(package: str, name: str, **filters: object) -> Template:
    """A template of a package of protorect: values are escaped, a missing one is an error."""
    environment = Environment(
        loader=PackageLoader("protorect", package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(filters)
    return environment.get_template(name)


def _prose(text: str) -> Markup:
    """Text escaped, `code` set as code, and no line break beside = or ±."""
    joined = re.sub(" ([=±]) ", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", joined))


def _cell(text: str) -> Markup:
    """As in a paragraph, but a narrow column may put an interval on a line of its own."""
    return Markup(_prose(text).replace("\N{NO-BREAK SPACE}±", " ±"))


def _markdown(element: Element, stem: str, figures: dict[str, str]) -> str:
    """One element as Markdown; the SVG text of figures is added to `figures`."""
    match element:
        case Table():
            return f"{markdown_table(element)}\n\n*{element.caption}*"
        case dict():
            return "\n".join(f"- **{term}**: {text}" for term, text in element.items())
        case Listing():
            return "\n".join([element.caption, "", "```text", *element.lines, "```"])
        case list():
            return "\n\n".join(_markdown(figure, stem, figures) for figure in element)
        case Figure():
            name = f"{stem}-{len(figures) + 1}.svg"
            figures[name] = standalone_svg(element.svg)
            return f"![{element.alt}]({name})\n\n*{element.caption}*"
    return element
