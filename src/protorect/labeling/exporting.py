"""Rows to export from a session or a sorted folder."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from protorect._utils.parameters import check_choice
from protorect.embedding.sources import DEFAULT_SOURCE
from protorect.errors import DataError, OptionError
from protorect.images.find import FailedPicture
from protorect.images.stored import PathLike
from protorect.labeling.corrections import SortedPictures
from protorect.labeling.engine import Engine
from protorect.labeling.examples import find_examples
from protorect.labeling.exports import CHECKED, ExportOptions, Labeled, Rows, export, format_module
from protorect.labeling.prediction import UNKNOWN, UNSURE, Prediction
from protorect.labeling.predictions import Predictions
from protorect.labeling.project import EXPORTS
from protorect.labeling.records import EXAMPLE, STATUSES, Exported
from protorect.labeling.view import View

INCLUDE = ("all", "checked", "from")
_FOLDERS = {"unsure": UNSURE, "unknown": UNKNOWN}


def labeled_pictures(view: View) -> list[Labeled]:
    """All pictures that have a label or were set aside, except unreadable ones.

    Those that were not embedded yet are there if a person labeled them.
    """
    places = view.rows.places(np.arange(view.pictures)).tolist()
    has_answers = bool(len(view.answers.ways))
    tops = view.answers.top(np.arange(len(view.rows.ids)), 2)[0].tolist() if has_answers else []
    rows = []
    for picture, place in enumerate(places):
        status = STATUSES[view.status[picture]]
        label = view.names.get(int(view.label[picture]), "")
        if view.read.unreadable[picture] or not (label or status == "unknown"):
            continue
        row = Prediction.said(view.read.listed[picture].file, label or UNKNOWN)
        if label and status not in CHECKED:
            ood = 0.0 if np.isnan(view.ood[picture]) else float(view.ood[picture])
            row = row._replace(
                probability=float(view.probability[picture]),
                runner_up=view.names[next(i for i in tops[place] if i != view.label[picture])],
                margin=float(view.answers.margin[place]),
                familiarity=1 - ood,
                folder=_FOLDERS.get(status, label),
            )
        rows.append(Labeled(row, status))
    return rows


def predictions_of(view: View, method: str) -> Predictions:
    """The labels of a view, as `sort_images` gives them."""
    rows = labeled_pictures(view)
    numbers = {one.file: number for number, one in enumerate(view.read.listed)}
    problems = [
        FailedPicture(view.read.listed[i].file, view.read.error(i) or "")
        for i in np.flatnonzero(view.read.unreadable).tolist()
    ]
    given = view.rows.ids[view.status[view.rows.ids] == EXAMPLE]
    return Predictions(
        tuple(row.prediction for row in rows),
        tuple(problems),
        tuple(view.read.listed[i].file for i in given.tolist()),
        tuple(sorted(view.names.values())),
        method,
        tuple(view.read.content(numbers[row.path]).hex() for row in rows),
    )


def export_session(
    engine: Engine,
    format: str,  # noqa: A002
    path: PathLike | None,
    *,
    include: str,
    minimum: float | None,
    options: dict[str, Any],
) -> Exported:
    """Export the pictures of a session."""
    module = format_module(format)
    if path is None:
        folder = engine.project.root / EXPORTS
        path = _free(folder, format, getattr(module, "SUFFIX", ""))
    settings = engine.project.settings
    classifier = {
        "source": settings.network,
        "method": settings.method,
        "thresholds": settings.thresholds,
        "cache": options.pop("cache", True),
    }
    rows = _included(labeled_pictures(engine.view), include, minimum)
    exported = Rows(tuple(rows), ExportOptions(**options), tuple(classifier.items()))
    return Exported(os.fspath(path), export(exported, path, format))


def export_sorted(
    root: Path,
    format: str,  # noqa: A002
    path: PathLike,
    *,
    include: str = "all",
    minimum: float | None = None,
    network: str | None = None,
    options: dict[str, Any],
) -> Exported:
    """Export the pictures of a folder that `protorect sort` made, with the corrections since.

    `network` is the one of a classifier: the folder does not say with which it was sorted.
    """
    format_module(format)
    found = find_examples(root, least=0)
    rows = [
        Labeled(Prediction.said(one.file, label), "unknown" if label == UNKNOWN else "example")
        for one, label in zip(found.pictures, found.labels, strict=True)
    ]
    known = {row.path for row in rows}
    for plan in SortedPictures.load(root).plans:
        for one in plan.placements:
            moved = os.fspath(root.absolute() / one.target)
            file = moved if plan.mode == "move" else one.prediction.path
            if file not in known and os.path.isfile(file):
                status = {UNKNOWN: "unknown", UNSURE: "unsure"}.get(one.prediction.folder)
                row = one.prediction._replace(path=file)
                rows.append(Labeled(row, status or "proposed"))
    classifier = (("cache", options.pop("cache", True)), ("source", network or DEFAULT_SOURCE))
    included = tuple(_included(rows, include, minimum))
    exported = Rows(included, ExportOptions(**options), classifier)
    return Exported(os.fspath(path), export(exported, path, format))


def _included(rows: list[Labeled], include: str, minimum: float | None) -> list[Labeled]:
    """Those rows that are asked for: all, checked ones, or also those of a minimum probability."""
    check_choice("include", include, INCLUDE)
    if minimum is not None and not (isinstance(minimum, int | float) and 0 <= minimum <= 1):
        raise OptionError(f"min_probability is {minimum!r}; it must lie in 0 .. 1.")
    if include == "from" and minimum is None:
        raise OptionError('include="from" needs min_probability, such as 0.9.')
    if include == "all" and minimum is None:
        return rows
    # No probability is as high as 2.
    least = 2.0 if include == "checked" or minimum is None else minimum
    return [
        row
        for row in rows
        if row.status in CHECKED or row.said_unknown or (row.in_class and row.probability >= least)
    ]


def _free(folder: Path, name: str, suffix: str) -> Path:
    """A name in a folder that is not taken."""
    for number in range(1, 100_000):
        path = folder / f"{name}{f'-{number}' if number > 1 else ''}{suffix}"
        if not os.path.lexists(path):
            return path
    raise DataError(f"{folder} is full of exports; remove some.")
