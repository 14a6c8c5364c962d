"""Tables in CSV files."""

import csv
import io
import os
from collections.abc import Sequence
from typing import Any

from protorect._utils.files import read_text
from protorect._utils.text import printable
from protorect.errors import DataError

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: such a text gets an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _original(cell: str) -> str:
    """The text of a cell without the apostrophe that `harmless` has added."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    header_required: bool = True,
    errors: str = "strict",
) -> list[tuple[str, list[str]]]:
    """For each row that is not empty: file and line for messages, and the cells of these columns.

    Names in the header may be in upper or lower case. A table without a header begins with these
    columns. `errors` is how to decode what is not UTF-8, as in `bytes.decode`.
    """
    name, expected = printable(path), ",".join(columns)
    reader = csv.reader(io.StringIO(read_text(path, errors=errors), newline=""))
    try:
        rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: {error}.") from error
    rows = [(line, cells) for line, cells in rows if any(cells)]
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    has_header = set(columns) <= set(header)
    if header_required and not has_header:
        raise DataError(f"{name} should be a CSV file with the columns {expected}.")
    places = [header.index(column) if has_header else i for i, column in enumerate(columns)]
    for line, cells in rows:
        if len(cells) <= max(places):
            shown = printable(",".join(cells))
            raise DataError(f"{name}, line {line}: {shown!r} is not {expected}.")
    rows = rows[1:] if has_header else rows
    return [(f"{name}, line {line}", [_original(cells[i]) for i in places]) for line, cells in rows]
