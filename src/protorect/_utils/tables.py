"""Tables in CSV files."""

import codecs
import csv
import io
import os
from collections.abc import Iterable, Sequence
from typing import Any

from protorect._utils.files import read_text
from protorect._utils.text import printable
from protorect.errors import DataError

# What a spreadsheet may take for the start of a formula, the full-width signs of Asian ones, too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_SEPARATORS = (",", ";", "\t")


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: such a text gets an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def _original(cell: str) -> str:
    """The text of a cell without the apostrophe that `harmless` has added."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    return cell.lstrip("'").startswith(_FORMULA)


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as comma-separated text, in which nothing is a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def any_text(content: bytes) -> str:
    """Text in UTF-8, UTF-16 or else Latin-1, with or without a byte-order mark."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    if len(content) > 1 and (content[0] == 0) != (content[1] == 0):  # no mark, one ASCII letter
        return content.decode("utf-16-le" if content[0] else "utf-16-be", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str | tuple[str, ...]],
    *,
    optional: Sequence[str] = (),
    header_required: bool = True,
    text: str | None = None,
) -> list[tuple[str, list[str]]]:
    """For each row that is not empty: file and line for messages, and the cells of these columns.

    Cells are separated by commas, semicolons or tabs. Names in the header may be in upper or lower
    case; a column may have one of several. A table without a header begins with these columns.
    The cells of the `optional` columns follow, empty if the table does not have the column. `text`
    is what the file holds, if it was read already.
    """
    name, names = printable(path), [one if isinstance(one, tuple) else (one,) for one in columns]
    expected = ",".join(one[0] for one in names)
    lines, places = _cells(name, read_text(path) if text is None else text, names)
    if header_required and places is None:
        raise DataError(f"{name} should be a CSV file with the columns {expected}.")
    header = [cell.lower() for cell in lines[0][1]] if places else []
    needed = list(range(len(names))) if places is None else places
    for line, cells in lines:
        if len(cells) <= max(needed):
            shown = printable(",".join(cells))
            raise DataError(f"{name}, line {line}: {shown!r} is not {expected}.")
    further = [header.index(one) if one in header else None for one in optional]
    return [
        (f"{name}, line {line}", [_cell(cells, place) for place in (*needed, *further)])
        for line, cells in (lines[1:] if places else lines)
    ]


def has_columns(text: str, columns: Sequence[str]) -> bool:
    """Whether a table has a header with these columns."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    names = [(one,) for one in columns]
    return any(_header(first, separator, names)[1] for separator in _SEPARATORS)


def _cells(
    name: str, text: str, columns: Sequence[tuple[str, ...]]
) -> tuple[list[tuple[int, list[str]]], list[int] | None]:
    """Lines that are not empty with their numbers, and the places of the columns in a header.

    The separator is the one with which a header has the columns, or else the first line most cells.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    tried = [_header(first, separator, columns) for separator in _SEPARATORS]
    known = [i for i, (_, places) in enumerate(tried) if places]
    best = known[0] if known else max(range(len(tried)), key=lambda i: (tried[i][0], -i))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_SEPARATORS[best])
    try:
        lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: {error}.") from error
    return [(line, cells) for line, cells in lines if any(cells)], tried[best][1]


def _header(
    line: str, separator: str, columns: Sequence[tuple[str, ...]]
) -> tuple[int, list[int] | None]:
    """How many cells the first line has, and the places of the columns if it is a header."""
    try:
        cells = [cell.strip().lower() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return 0, None
    places = [next((cells.index(one) for one in names if one in cells), -1) for names in columns]
    return len(cells), None if min(places) < 0 else places


def _cell(cells: Sequence[str], place: int | None) -> str:
    return _original(cells[place]) if place is not None and place < len(cells) else ""
