"""Parquet, by pyarrow."""

from pathlib import Path

from protorect.errors import needs_extra
from protorect.labeling.exports import Rows
from protorect.labeling.prediction import columns, rounded

SET_ASIDE, SUFFIX = True, ".parquet"


def check() -> None:
    """Raise MissingExtraError if pyarrow is not installed."""
    with needs_extra("Parquet needs pyarrow", "parquet"):
        import pyarrow.parquet  # noqa: F401


def write(rows: Rows, path: Path) -> None:
    """Write a table with one row per picture."""
    import pyarrow.parquet

    table = columns([rounded(row.prediction) for row in rows])
    pyarrow.parquet.write_table(
        pyarrow.table(table | {"status": [row.status for row in rows]}), path
    )
