"""What lies beside the sorted pictures: tables, the contact sheet, the comparison to the truth."""

from __future__ import annotations

from collections.abc import Sequence

from protorect.data.stored import printable
from protorect.labelling.folder import ERRORS, PARQUET, PREDICTIONS, SortedFolder
from protorect.labelling.pictures import Problem
from protorect.labelling.predictions import COLUMNS, table_text, write_parquet, written_row
from protorect.labelling.reading import Progress


def write_outputs(
    folder: SortedFolder,
    problems: Sequence[Problem],
    *,
    parquet: bool = False,
    sheet: bool = True,
    assess: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write what is known about everything that was ever sorted into the folder."""
    entries = folder.entries
    rows = [(*written_row(entry.prediction), printable(entry.to)) for entry in entries]
    folder.write(PREDICTIONS, table_text((*COLUMNS, "placed"), rows))
    if parquet:
        write_parquet(folder.root / PARQUET, [entry.prediction for entry in entries])
        folder.remember(PARQUET)
    if problems:
        told = [(printable(path), reason) for path, reason in problems]
        folder.write(ERRORS, table_text(Problem._fields, told))
    else:
        (folder.root / ERRORS).unlink(missing_ok=True)
