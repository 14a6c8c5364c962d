"""One table for the terminal and as Markdown; tests/report/test_page.py has its HTML."""

import pytest
from rich.console import Console

from protorect.errors import DataError
from protorect.report.table import Table, markdown_table, terminal_table

TABLE = Table("of `things`", ["`a`", "b"], [["x | y", "1.00 ± 0.25"], ["`z`", "12"]])


def test_terminal_table_has_the_caption_above_and_numbers_to_the_right():
    console = Console(width=60, record=True, file=None, quiet=True)
    shown = terminal_table(TABLE)
    assert shown.title == "of things"
    assert [column.justify for column in shown.columns] == ["left", "right"]
    with console.capture():
        console.print(shown)
    assert [list(column.cells) for column in shown.columns] == [
        ["x | y", "z"],
        ["1.00 ± 0.25", "12"],
    ]


def test_a_narrow_terminal_loses_no_digit():
    console = Console(width=16, color_system=None)
    with console.capture() as capture:
        console.print(terminal_table(TABLE))
    assert "0.25" in capture.get()
    assert "…" not in capture.get()


def test_markdown_table_escapes_the_column_separator():
    assert markdown_table(TABLE) == (
        "| `a` | b |\n| --- | ---: |\n| x \\| y | 1.00 ± 0.25 |\n| `z` | 12 |"
    )


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(DataError, match="'sizes' has 2 columns, but a row of 3 cells: a, 1, 2"):
        Table("sizes", ["name", "one"], [["a", "1", "2"]])
