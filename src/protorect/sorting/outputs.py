"""The files beside the sorted pictures: tables, the contact sheet, the evaluation."""

import os
from collections.abc import Iterable, Iterator, Sequence

from protorect._utils.files import sha256_of_file, write_text
from protorect._utils.progress import Progress
from protorect._utils.tables import table_text
from protorect._utils.text import printable
from protorect.images.find import FailedPicture
from protorect.labeling.exports import export
from protorect.labeling.prediction import UNKNOWN, UNSURE, Prediction, rounded
from protorect.report.plots.accuracy import confusion_plot
from protorect.report.style import standalone_svg
from protorect.sorting.contact_sheet import contact_sheet, make_thumbnails, page_name
from protorect.sorting.evaluation import MANY, Evaluation, evaluate_placements
from protorect.sorting.folder import THUMBNAILS, SortedFolder


def write_outputs(
    folder: SortedFolder,
    problems: Sequence[FailedPicture],
    *,
    parquet: bool = False,
    with_contact_sheet: bool = True,
    evaluate: bool = False,
    progress: Progress | None = None,
) -> Evaluation | None:
    """Write tables, evaluation and contact sheet of all pictures in a sorted folder.

    `problems` are the pictures that could not be read or placed, and the skipped files. `evaluate`
    takes the folder that a picture came from as its true label. `progress` counts thumbnails.
    """
    folder.clear(folder.outputs())
    rows = [(rounded(one.prediction), printable(one.target)) for one in folder.placements]
    lines = ((*row, target, row.ood, _status(row), row.label) for row, target in rows)
    header = (*Prediction._fields, "placed", "ood", "status", "predicted")
    table = table_text(header, lines)
    _write(folder, "predictions.csv", table)
    if parquet:
        with folder.output("predictions.parquet") as path:
            export([placement.prediction for placement in folder.placements], path, "parquet")
    if problems:
        errors = ((printable(path), reason) for path, reason in problems)
        _write(folder, "errors.csv", table_text(FailedPicture._fields, errors))
    labels = {label for plan in folder.plans for _, label in plan.examples}
    classes = sorted(labels - {UNKNOWN})
    evaluation, plot = None, ""
    if evaluate:
        evaluation = evaluate_placements(folder.placements, classes)
        _write(folder, "evaluation.json", evaluation.json(folder.plans[-1].network))
        if len(classes) < MANY:
            plot = confusion_plot(evaluation.counts, evaluation.classes)
            _write(folder, "confusion.svg", standalone_svg(plot, "#444"))
    if with_contact_sheet:
        examples = list(_readable(folder.plans[-1].examples))
        pictures = [(file, content) for file, _, content in examples]
        pictures += [(str(folder.root / one.target), one.content) for one in folder.placements]
        make_thumbnails(folder.root / THUMBNAILS, pictures, progress)
        pages = contact_sheet(folder.placements, classes, examples, THUMBNAILS, evaluation, plot)
        for number, page in enumerate(pages):
            _write(folder, page_name(number), page)
    return evaluation


def _status(row: Prediction) -> str:
    """What is known of a label; a person may write `accepted` instead."""
    if row.folder == row.label and not row.runner_up:
        return "example"  # it has the content of one
    return {UNKNOWN: "unknown", UNSURE: "unsure"}.get(row.folder, "proposed")


def _write(folder: SortedFolder, name: str, text: str) -> None:
    with folder.output(name) as path:
        write_text(path, text)


def _readable(examples: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """File, label and SHA-256 of the examples that can still be read."""
    for file, label in examples:
        try:
            content = sha256_of_file(file) if os.path.isfile(file) else ""
        except OSError:
            continue
        if content:
            yield file, label, content
