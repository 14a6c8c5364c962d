"""The contact sheet: one page of all pictures by class, the surest first, with its thumbnails."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Template
from markupsafe import Markup

from protorect._utils.text import printable
from protorect.labeling.predictions import UNKNOWN, UNSURE
from protorect.report.page import load_template
from protorect.sorting.evaluation import Assessment
from protorect.sorting.journal import Entry
from protorect.sorting.thumbnails import thumbnail_name

DOUBTFUL = 0.8  # a label of less probability is marked
_ASIDE = {UNSURE: "Unsure", UNKNOWN: "Unknown"}
_SAID = {
    UNSURE: "Too close to call between two classes.",
    UNKNOWN: "Unlike the examples of every class.",
}


@dataclass(frozen=True)
class Tile:
    """One picture on the page."""

    link: str
    thumbnail: str
    name: str
    caption: str
    detail: str
    doubtful: bool


@dataclass(frozen=True)
class Group:
    """A class, or what was set aside, with its pictures."""

    anchor: str
    title: str
    said: str
    examples: Sequence[Tile]
    tiles: Sequence[Tile]


def contact_sheet(
    entries: Sequence[Entry],
    classes: Sequence[str],
    examples: Sequence[tuple[str, str, str]],
    thumbnails: str,
    assessment: Assessment | None = None,
    confusion: str = "",
) -> str:
    """The page as HTML; everything is escaped.

    Parameters
    ----------
    entries
        All pictures.
    classes
        The labels, in the order in which they are shown.
    examples
        (file, label, SHA-256) of the examples.
    thumbnails
        The folder with the thumbnails, beside the page.
    assessment, confusion
        How right the labels are, and its plot as SVG, where the truth is known.
    """
    by_folder: dict[str, list[Entry]] = {}
    for entry in entries:
        by_folder.setdefault(entry.prediction.folder, []).append(entry)
    shown: dict[str, list[Tile]] = {}
    for file, label, content in examples:
        shown.setdefault(label, []).append(_example(file, content, thumbnails))
    groups = [
        _group(number, name, by_folder.get(name, []), shown.get(name, []), thumbnails)
        for number, name in enumerate((*classes, UNSURE, UNKNOWN))
    ]
    confused = [
        (true, label, [_tile(entry, thumbnails, name_label=False) for entry in some])
        for true, label, some in (assessment.confused if assessment else ())
    ]
    script, style = _part("contact_sheet.js"), _part("contact_sheet.css")
    return _template().render(
        total=len(entries),
        groups=groups,
        assessment=assessment,
        confused=confused,
        confusion=Markup(confusion),
        script=Markup(script),
        style=Markup(style),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _group(
    number: int, name: str, entries: Sequence[Entry], examples: Sequence[Tile], thumbnails: str
) -> Group:
    aside = name in _ASIDE
    surest_first = sorted(entries, key=lambda e: -_confidence(e, name))
    tiles = [_tile(entry, thumbnails, name_label=aside) for entry in surest_first]
    return Group(f"g{number}", _ASIDE.get(name, name), _SAID.get(name, ""), examples, tiles)


def _confidence(entry: Entry, folder: str) -> float:
    row = entry.prediction
    return row.familiarity if folder == UNKNOWN else row.probability


def _tile(entry: Entry, thumbnails: str, name_label: bool) -> Tile:
    row = entry.prediction
    percent = f"{100 * row.probability:.0f} %"
    detail = f"{row.label} {percent}, familiarity {row.familiarity:.2f}"
    if row.runner_up:
        second = 100 * (row.probability - row.margin)
        detail = f"{row.label} {percent}, {row.runner_up} {second:.0f} %, " + detail.split(", ")[1]
    return Tile(
        _address(entry.to),
        f"{thumbnails}/{thumbnail_name(entry.content)}",
        printable(os.path.basename(row.path)),
        f"{row.label} {percent}" if name_label else percent,
        detail,
        row.folder in _ASIDE or row.probability < DOUBTFUL,
    )


def _example(file: str, content: str, thumbnails: str) -> Tile:
    name = printable(os.path.basename(file))
    thumbnail = f"{thumbnails}/{thumbnail_name(content)}"
    return Tile(thumbnail, thumbnail, name, "", "an example", False)


def _address(path: str) -> str:
    """A relative address of a file, whatever signs are in its name."""
    return "./" + quote(os.fsencode(path))


def _part(name: str) -> str:
    return (files("protorect.sorting") / name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    return load_template("sorting", "contact_sheet.html.jinja")
