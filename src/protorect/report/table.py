"""A table, for the terminal and as Markdown; `page` has its HTML."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as RichTable

from protorect._utils.text import escaped
from protorect.errors import DataError

LEAST_WIDTH = 6  # of a column of names, in characters


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first cell of a row is its name, the others are numbers.

    Names of code stand in `backquotes`.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise DataError(
                    f"table {self.caption!r} has {len(self.header)} columns, "
                    f"but a row of {len(row)} cells: {', '.join(row)}."
                )


def terminal_table(table: Table, console: Console) -> RichTable:
    """The table for this terminal, its caption above.

    Where it is too wide, names and headers are broken into lines before any number is.
    """
    shown = RichTable(title=_plain(table.caption), title_justify="left")
    for number, name in enumerate(table.header):
        shown.add_column(_plain(name), justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        shown.add_row(*map(_plain, row))
    unlimited = console.options.update(width=10_000)
    if console.measure(shown, options=unlimited).maximum > console.width:
        columns = list(zip(*table.rows, strict=True))[1:]
        numbers = [max(len(_plain(cell)) for cell in column) for column in columns]
        names = console.width - sum(numbers) - 3 * len(shown.columns) - 1  # without the borders
        if names >= LEAST_WIDTH:
            for column, width in zip(shown.columns, [names, *numbers], strict=False):
                column.width = width
    return shown


def markdown_table(table: Table) -> str:
    """The rows of the table as Markdown, without the caption."""
    rule = ["---", *["---:"] * (len(table.header) - 1)]
    rows = (table.header, rule, *table.rows)
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _plain(text: str) -> str:
    return escaped(text.replace("`", ""))
