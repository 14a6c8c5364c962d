"""Parquet, by pyarrow."""

from collections.abc import Sequence
from pathlib import Path

from protorect.errors import needs_extra
from protorect.labeling.prediction import Prediction, columns, rounded


def check() -> None:
    """Raise MissingExtraError if pyarrow is not installed."""
    with needs_extra("Parquet needs pyarrow", "parquet"):
        import pyarrow.parquet  # noqa: F401


def write(rows: Sequence[Prediction], path: Path) -> None:
    """Write a table with one row per prediction."""
    import pyarrow.parquet

    table = pyarrow.table(columns([rounded(row) for row in rows]))
    pyarrow.parquet.write_table(table, path)
