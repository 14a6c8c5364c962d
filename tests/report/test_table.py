"""One table for the terminal and as Markdown; tests/report/test_page.py has its HTML."""

import pytest
from rich.console import Console

from protorect.errors import DataError
from protorect.report.table import Table, markdown_table, terminal_table

TABLE = Table("of `things`", ["`a`", "b"], [["x | y", "1.00 ± 0.25"], ["`z`", "12"]])


def test_terminal_table_has_the_caption_above_and_numbers_to_the_right():
    console = Console(width=60, record=True, file=None, quiet=True)
    shown = terminal_table(TABLE, console)
    assert shown.title == "of things"
    assert [column.justify for column in shown.columns] == ["left", "right"]
    with console.capture():
        console.print(shown)
    assert [list(column.cells) for column in shown.columns] == [
        ["x | y", "z"],
        ["1.00 ± 0.25", "12"],
    ]


def printed(table, width):
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(terminal_table(table, console))
    return capture.get()


def test_a_narrow_terminal_breaks_names_and_headers_before_numbers():
    header = ["method", "1-shot", "minus bd-cspn", "5-shot", "minus bd-cspn"]
    numbers = ["84.10 ± 0.52", "+12.60 ± 0.31", "94.10 ± 0.42", "+2.60 ± 0.21"]
    table = Table("accuracy in %", header, [["bd-cspn-classes", *numbers]])
    for width in (71, 75, 80, 400):
        text = printed(table, width)
        assert max(map(len, text.splitlines())) <= width
        assert any(all(number in line for number in numbers) for line in text.splitlines())
    assert "bd-cspn-classes" not in printed(table, 75)


def test_the_narrowest_terminal_loses_no_digit():
    text = printed(TABLE, 16)
    assert "0.25" in text
    assert "…" not in text


def test_markdown_table_escapes_the_column_separator():
    assert markdown_table(TABLE) == (
        "| `a` | b |\n| --- | ---: |\n| x \\| y | 1.00 ± 0.25 |\n| `z` | 12 |"
    )


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(DataError, match="'sizes' has 2 columns, but a row of 3 cells: a, 1, 2"):
        Table("sizes", ["name", "one"], [["a", "1", "2"]])
