"""Comma-separated text, numbers of four digits."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from protorect.labeling.prediction import COLUMNS, Prediction, rounded


def check() -> None:
    """Do nothing: every installation can write this format."""


def write(rows: Sequence[Prediction], path: Path) -> None:
    """Write a header, then one line per prediction."""
    lines = ((*row, row.ood) for row in map(rounded, rows))
    path.write_text(table_text(COLUMNS, lines), encoding="utf-8", newline="")


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as comma-separated text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
