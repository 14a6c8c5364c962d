"""The contact sheet: one page of all pictures by class, the most probable first."""

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
from protorect.sorting.evaluation import Evaluation
from protorect.sorting.journal import Placement
from protorect.sorting.thumbnails import thumbnail_name

DOUBTFUL = 0.8  # a label of less probability is marked
_SET_ASIDE = {
    UNSURE: ("Unsure", "Too close to call between two classes."),
    UNKNOWN: ("Unknown", "Unlike the examples of every class."),
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
    """The pictures of one class, or those that were set aside."""

    anchor: str
    title: str
    note: str
    examples: Sequence[tuple[str, str]]  # thumbnail and name
    tiles: Sequence[Tile]


def contact_sheet(
    placements: Sequence[Placement],
    classes: Sequence[str],
    examples: Sequence[tuple[str, str, str]],
    thumbnails: str,
    evaluation: Evaluation | None = None,
    confusion: str = "",
) -> str:
    """Render the page as HTML; everything is escaped.

    Classes are shown in the given order, with their `examples` (file, label, SHA-256); the folder
    `thumbnails` is relative to the page. Where the true labels are known, `evaluation` is shown
    with its confusion matrix as SVG.
    """
    by_folder: dict[str, list[Placement]] = {}
    for placement in placements:
        by_folder.setdefault(placement.prediction.folder, []).append(placement)
    by_label: dict[str, list[tuple[str, str]]] = {}
    for file, label, content in examples:
        shown = (f"{thumbnails}/{thumbnail_name(content)}", printable(os.path.basename(file)))
        by_label.setdefault(label, []).append(shown)
    groups = [
        _group(number, name, by_folder.get(name, []), by_label.get(name, []), thumbnails)
        for number, name in enumerate((*classes, UNSURE, UNKNOWN))
    ]
    confused = [
        (true, label, [_tile(placement, thumbnails) for placement in some])
        for true, label, some in (evaluation.confused if evaluation else ())
    ]
    script, style = _resource("contact_sheet.js"), _resource("contact_sheet.css")
    return _template().render(
        total=len(placements),
        groups=groups,
        evaluation=evaluation,
        confused=confused,
        confusion=Markup(confusion),
        script=Markup(script),
        style=Markup(style),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _group(
    number: int,
    name: str,
    placements: Sequence[Placement],
    examples: Sequence[tuple[str, str]],
    thumbnails: str,
) -> Group:
    title, note = _SET_ASIDE.get(name, (name, ""))
    if name == UNKNOWN:
        ordered = sorted(placements, key=lambda one: one.prediction.ood)
    else:
        ordered = sorted(placements, key=lambda one: -one.prediction.probability)
    tiles = [_tile(one, thumbnails, with_label=name in _SET_ASIDE) for one in ordered]
    return Group(f"g{number}", title, note, examples, tiles)


def _tile(placement: Placement, thumbnails: str, with_label: bool = False) -> Tile:
    row = placement.prediction
    percent = f"{100 * row.probability:.0f} %"
    details = [f"{row.label} {percent}"]
    if row.runner_up:
        details.append(f"{row.runner_up} {100 * (row.probability - row.margin):.0f} %")
    details.append(f"out-of-distribution score {row.ood:.2f}")
    return Tile(
        "./" + quote(os.fsencode(placement.target)),
        f"{thumbnails}/{thumbnail_name(placement.content)}",
        printable(os.path.basename(row.path)),
        f"{row.label} {percent}" if with_label else percent,
        ", ".join(details),
        row.folder in _SET_ASIDE or row.probability < DOUBTFUL,
    )


def _resource(name: str) -> str:
    return (files("protorect.sorting") / name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    return load_template("sorting", "contact_sheet.html.jinja")
