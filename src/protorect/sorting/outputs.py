"""What lies beside the sorted pictures: tables, the contact sheet, the comparison to the truth."""

from __future__ import annotations

from collections.abc import Sequence

from protorect._utils.progress import Progress
from protorect._utils.text import printable
from protorect.images.find import FailedPicture
from protorect.labeling.predictions import COLUMNS, table_text, write_parquet, written_row
from protorect.report.plots.confusion import confusion_plot
from protorect.sorting.contact_sheet import contact_sheet
from protorect.sorting.evaluation import Assessment, assess
from protorect.sorting.folder import (
    CONFUSION,
    ERRORS,
    EVALUATION,
    PARQUET,
    PREDICTIONS,
    SHEET,
    THUMBNAILS,
    SortedFolder,
)
from protorect.sorting.thumbnails import example_contents, make_thumbnails


def write_outputs(
    folder: SortedFolder,
    problems: Sequence[FailedPicture],
    *,
    parquet: bool = False,
    sheet: bool = True,
    truth: bool = False,
    progress: Progress | None = None,
) -> Assessment | None:
    """Write what is known about everything that was ever sorted into the folder.

    Parameters
    ----------
    folder
        With its journals.
    problems
        What could not be read or placed.
    parquet, sheet
        Whether to write the Parquet file and the contact sheet.
    truth
        Whether the pictures' own folders are their true labels.
    progress
        Called with the number of thumbnails done and the number of all.

    Returns
    -------
    assessment
        How right the labels are, where the truth is known.
    """
    entries = folder.entries
    folder.clear(PARQUET, ERRORS, EVALUATION, CONFUSION, SHEET)
    rows = [(*written_row(entry.prediction), printable(entry.to)) for entry in entries]
    folder.write(PREDICTIONS, table_text((*COLUMNS, "placed"), rows))
    if parquet:
        write_parquet(folder.root / PARQUET, [entry.prediction for entry in entries])
        folder.remember(PARQUET)
    if problems:
        told = [(printable(path), reason) for path, reason in problems]
        folder.write(ERRORS, table_text(FailedPicture._fields, told))
    assessment, plot = None, ""
    if truth:
        assessment = assess(entries, _classes(folder))
        plot = confusion_plot(assessment.counts, assessment.classes)
        folder.write(EVALUATION, assessment.json())
        folder.write(CONFUSION, plot.replace("currentColor", "#444"))
    if sheet:
        _write_sheet(folder, assessment, plot, progress)
    return assessment


def _write_sheet(
    folder: SortedFolder, assessment: Assessment | None, plot: str, progress: Progress | None
) -> None:
    examples = folder.batches[-1].examples
    contents = example_contents([file for file, _ in examples])
    shown = [(file, label, contents[file]) for file, label in examples if file in contents]
    placed = [(str(folder.root / entry.to), entry.content) for entry in folder.entries]
    wanted = [*((file, content) for file, _, content in shown), *placed]
    make_thumbnails(folder.root / THUMBNAILS, wanted, progress)
    page = contact_sheet(folder.entries, _classes(folder), shown, THUMBNAILS, assessment, plot)
    folder.write(SHEET, page)


def _classes(folder: SortedFolder) -> list[str]:
    return sorted({label for batch in folder.batches for _, label in batch.examples})
