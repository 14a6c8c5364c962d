"""A page of text, tables and figures, as one HTML file without requests, or as Markdown."""

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from numpy.typing import NDArray
from PIL import Image

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


@dataclass(frozen=True)
class Picture:
    """A picture of a strip: uint8 pixels, (height, width) with dark ink, or (height, width, 3).

    `mark` is "given", "good" or "bad", which the page shows by its frame; `note` stands below it.
    """

    pixels: NDArray[Any]
    alt: str
    mark: str = ""
    note: str = ""


@dataclass(frozen=True)
class Strip:
    """Pictures that belong together, side by side below a title."""

    title: str
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Link:
    """A link to another file, on a line of its own."""

    text: str
    target: str


Element = str | Table | Figure | list[Figure] | dict[str, str] | Listing | Strip | Link
"""What a section holds. A string is a paragraph, with `code` in backquotes; a list of figures is
shown side by side where the page is wide enough; a dict is a list of terms and their meanings."""


@dataclass(frozen=True)
class Section:
    """A heading and the elements below it."""

    title: str
    elements: Sequence[Element]


@dataclass(frozen=True)
class Highlight:
    """A main result in large figures, what it is, and a remark."""

    value: str
    label: str
    remark: str


@dataclass(frozen=True)
class Page:
    """A title, one or two sentences with the main result, sections; highlights in HTML only."""

    title: str
    lead: str
    sections: Sequence[Section]
    highlights: Sequence[Highlight] = ()


def render_html(page: Page) -> str:
    """The page as HTML. All text is escaped; figures are embedded as they are."""
    filters = {"prose": _prose, "cell": _cell, "heading": _heading, "data": _data}
    template = load_template("report", "page.html.jinja", **filters)
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


def _heading(text: str) -> Markup:
    """As in a paragraph, without a line break in words such as "5-shot"."""
    return Markup(re.sub(r"\b\d+-\w+", r"<span>\g<0></span>", str(_prose(text))))


def _data(pixels: NDArray[Any]) -> str:
    """Pixels as a data URL: JPEG for colors, PNG for ink."""
    file, kind = io.BytesIO(), "png" if pixels.ndim == 2 else "jpeg"
    Image.fromarray(pixels).save(file, kind, quality=72, optimize=True)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def _markdown(element: Element, stem: str, figures: dict[str, str]) -> str:
    """One element as Markdown; the SVG text of figures is added to `figures`."""
    match element:
        case Table():
            return f"{markdown_table(element)}\n\n*{element.caption}*"
        case dict():
            return "\n".join(f"- **{term}**: {text}" for term, text in element.items())
        case Listing():
            return "\n".join([element.caption, "", "```text", *element.lines, "```"])
        case Strip():
            return f"**{element.title}**: {', '.join(one.alt for one in element.pictures)}"
        case Link():
            return f"[{element.text}]({element.target})"
        case list():
            return "\n\n".join(_markdown(figure, stem, figures) for figure in element)
        case Figure():
            name = f"{stem}-{len(figures) + 1}.svg"
            figures[name] = standalone_svg(element.svg)
            return f"![{element.alt}]({name})\n\n*{element.caption}*"
    return element
