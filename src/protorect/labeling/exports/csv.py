"""Comma-separated text, numbers of four digits.

A text that a spreadsheet would take for a formula is written with an apostrophe before it.
"""

from pathlib import Path

from protorect._utils.tables import table_text
from protorect.labeling.exports import Rows
from protorect.labeling.prediction import COLUMNS, rounded

SET_ASIDE, SUFFIX = True, ".csv"


def write(rows: Rows, path: Path) -> None:
    """Write a header, then one line per picture."""
    predictions = [(rounded(row.prediction), row.status) for row in rows]
    lines = ((*row, row.ood, status) for row, status in predictions)
    path.write_text(table_text((*COLUMNS, "status"), lines), encoding="utf-8", newline="")
