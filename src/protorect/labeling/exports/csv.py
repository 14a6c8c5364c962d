"""Comma-separated text, numbers of four digits.

A text that a spreadsheet would take for a formula is written with an apostrophe before it.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from protorect._utils.tables import harmless
from protorect.labeling.exports import Rows
from protorect.labeling.prediction import COLUMNS, rounded

SET_ASIDE, SUFFIX = True, ".csv"


def check() -> None:
    """Do nothing: every installation can write this format."""


def write(rows: Rows, path: Path) -> None:
    """Write a header, then one line per picture."""
    predictions = [(rounded(row.prediction), row.status) for row in rows]
    lines = ((*row, row.ood, status) for row, status in predictions)
    path.write_text(table_text((*COLUMNS, "status"), lines), encoding="utf-8", newline="")


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as comma-separated text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue()
