"""A table, for the terminal and as Markdown; `page` has its HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table as RichTable

from protorect.errors import DataError


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


def terminal_table(table: Table) -> RichTable:
    """The table for the terminal, its caption above."""
    shown = RichTable(title=_plain(table.caption), title_justify="left")
    for number, name in enumerate(table.header):
        shown.add_column(_plain(name), justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        shown.add_row(*map(_plain, row))
    return shown


def markdown_table(table: Table) -> str:
    """The rows of the table as Markdown, without the caption."""
    rule = ["---", *["---:"] * (len(table.header) - 1)]
    return "\n".join(_markdown_row(row) for row in (table.header, rule, *table.rows))


def _plain(text: str) -> str:
    return text.replace("`", "")


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
