"""A Parquet file with path and label, such as the predictions that `protorect` writes."""

import os

from protorect._utils.files import open_file
from protorect._utils.text import on_one_line, printable
from protorect.errors import DataError, needs_extra
from protorect.labeling.examples.found import Found, Row, checked_rows, example_of
from protorect.labeling.examples.predictions import OPTIONAL
from protorect.labeling.examples.table import LABEL, PATH


def recognizes(path: str, head: bytes) -> bool:
    """Whether the file begins like Parquet."""
    return head.startswith(b"PAR1")


def read(path: str, nested: bool) -> Found:
    """Every row; of a table of predictions those that a person has changed or accepted."""
    with needs_extra("Parquet needs pyarrow", "parquet"):
        import pyarrow
        import pyarrow.parquet
    name, root = printable(path), os.path.dirname(os.path.abspath(path))
    try:
        with open_file(path) as file:
            names = {one.lower(): one for one in pyarrow.parquet.read_schema(file).names}
            wanted = _columns(names, name)
            file.seek(0)
            table = pyarrow.parquet.read_table(file, columns=list(wanted.values()))
            columns = {
                key: ["" if value is None else str(value) for value in table[column].to_pylist()]
                for key, column in wanted.items()
            }
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot read {name}: {on_one_line(error)}.") from error
    rows = [
        Row(f"{name}, row {number}", **dict(zip(columns, cells, strict=True)))
        for number, cells in enumerate(zip(*columns.values(), strict=True), 1)
    ]
    if {"probability", "folder"} <= set(names):
        return Found(checked_rows(rows, root), complete=False)
    return Found([example_of(row, row.label, root) for row in rows])


def _columns(names: dict[str, str], file: str) -> dict[str, str]:
    """The columns to read, by the name of their field."""
    found = {"path": PATH, "label": LABEL} | {one: (one,) for one in OPTIONAL}
    columns = {
        field: next((names[one] for one in allowed if one in names), "")
        for field, allowed in found.items()
    }
    for field in ("path", "label"):
        if not columns[field]:
            raise DataError(f"{file} has no column {field}; it has {', '.join(names) or 'none'}.")
    return {field: column for field, column in columns.items() if column}
