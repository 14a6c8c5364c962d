"""`protorect methods`: the list, the descriptions, and docs/methods.md, which it prints."""

import re
from pathlib import Path

from protorect import METHODS
from protorect.cli import main
from protorect.methods import PICTURE_METHODS

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"


def test_one_line_per_method(capsys):
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    methods = (METHODS | PICTURE_METHODS).values()
    assert [line.split()[:2] for line in lines] == [[m.name, m.family] for m in methods]
    assert lines[-1].endswith("needs pictures")


def test_the_description_of_named_methods(capsys):
    assert main(["methods", "bd-cspn", "cspn:z=3"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("bd-cspn (transductive): both corrections")
    assert "ECCV 2020" in shown
    assert "epsilon=10.0: Sharpness of the weights, eq. (6)." in shown
    assert "cspn:z=3 (inductive)" in shown
    assert "z=3: Number of pseudo-labeled queries that may join each class (Z)" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_an_unknown_method_is_an_error(capsys):
    assert main(["methods", "bd-cspm"]) == 2
    assert "Did you mean 'bd-cspn'?" in capsys.readouterr().err


def test_the_page_is_what_the_command_prints(capsys):
    assert main(["methods", "--markdown"]) == 0
    assert capsys.readouterr().out == PAGE.read_text()
    for name in METHODS | PICTURE_METHODS:
        assert f"| `{name}` |" in PAGE.read_text()


def test_every_row_of_a_table_has_its_columns():
    overview, _, sections = PAGE.read_text().partition("\n## ")
    for text, columns in ((overview, 6), (sections, 3)):
        rows = [line for line in text.splitlines() if line.startswith("| `")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {columns + 1}
