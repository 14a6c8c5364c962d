"""Nothing that a file, a class or a path is called can control the terminal, or a spreadsheet."""

import argparse
import csv
import io
import re
import sys

import pytest

from helpers.sorting import picture
from protorect._utils.tables import table_text
from protorect._utils.text import as_message, escaped, printable
from protorect.cli import main
from protorect.cli.output import print_list, print_table
from protorect.cli.terminal import drawable, shown_output
from protorect.labeling.examples import find_examples
from protorect.report.table import Table

HOSTILE = ("\x1b[31mred", "\x1b]0;title\x07", "a\rb", "\x9b2J", "\x7f", "\u202egpj.exe", "\u2066x")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("name", HOSTILE)
def test_control_characters_are_escapes(name):
    for shown in (escaped(name), printable(name), as_message(name)):
        assert not CONTROL.search(shown)
        assert shown.encode().decode("unicode_escape") == name


def test_names_that_are_not_utf_8_and_line_ends_are_escapes_too():
    assert printable("a\udcff\nb") == "a\\xff\\nb"
    assert printable("a\ud800\0") == "a\\ud800\\0"
    assert escaped("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"
    assert printable("Käse 🧀 \N{ZERO WIDTH JOINER}") == "Käse 🧀 \N{ZERO WIDTH JOINER}"


def test_a_very_long_message_keeps_its_ends():
    message = as_message(f"begin {'x' * 10**6} end")
    assert len(message) < 2000
    assert message.startswith("begin x")
    assert message.endswith("x end")


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_is_printed_is_escaped(capsys, name):
    with shown_output():
        sys.stdout.write(f"{name}\n")
        sys.stderr.write(f"{name}\n")
        print_list("names", [name])
        print_table(Table(name, [name, name], [[name, name]]))
    output, errors = capsys.readouterr()
    assert not CONTROL.search(output + errors)
    assert output.count(escaped(name)) == 6
    assert errors.count(escaped(name)) == 2


def test_the_outputs_are_restored_and_what_is_drawn_is_not_escaped(capsys):
    before = sys.stdout
    with shown_output():
        drawable(sys.stdout).write("\x1b[2K")
    assert sys.stdout is before
    assert capsys.readouterr().out == "\x1b[2K"


def test_arguments_that_are_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["undo", "x", "\x1b[31mred"])
    assert ended.value.code == 2
    assert "unrecognized arguments: \\x1b[31mred" in capsys.readouterr().err


def test_closed_outputs(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with shown_output():
        sys.stdout.write("into nothing")
        argparse.ArgumentParser().print_help()


@pytest.mark.parametrize("name", ["\x1b[31mred", "\x9b2J", "\u202egpj", "=1+1", "@x", "'=1", "＝1"])
def test_hostile_names_of_pictures_and_classes(colors, capsys, name):
    """Of a class they are refused; of a picture they are shown as text, and no formula."""
    shown = escaped(name)
    picture(colors.pictures / f"{name}.png", (1, 2, 3), 0)
    (colors.pictures / f"{name}.jpg").write_bytes(b"no picture")
    sort = ["sort", str(colors.pictures), "--network", colors.weights, "--no-sheet", "--no-cache"]
    sort += ["--out", str(colors.out), "--examples"]
    assert main([*sort, str(colors.examples)]) == 1
    output, errors = capsys.readouterr()
    assert f"{shown}.jpg" in errors
    assert not CONTROL.search(output + errors)
    with (colors.out / "errors.csv").open(newline="") as file:
        assert [row["path"].endswith(f"{shown}.jpg") for row in csv.DictReader(file)] == [True]
    with (colors.out / "predictions.csv").open(newline="") as file:
        rows = [(row["path"], row["label"]) for row in csv.DictReader(file)]
    (colors.root / "labels.csv").write_text(table_text(("path", "label"), rows), newline="")
    found = find_examples([str(colors.root / "labels.csv")])
    assert str(colors.pictures / f"{name}.png") in [one.file for one in found.pictures]
    assert main(["undo", str(colors.out)]) == 0
    (colors.examples / "red").rename(colors.examples / name)
    assert main([*sort, str(colors.examples)]) == (1 if shown == name else 2)
    output, errors = capsys.readouterr()
    assert shown in output + errors
    assert not CONTROL.search(output + errors)


def test_no_cell_of_a_table_is_a_formula(colors):
    (colors.examples / "red").rename(colors.examples / "=HYPERLINK(1)")
    arguments = ["--network", colors.weights, "--no-sheet", "--no-cache", "--out", str(colors.out)]
    sort = ["sort", str(colors.pictures), "--examples", str(colors.examples), *arguments]
    assert main([*sort, "--csv", str(colors.root / "copy.csv")]) == 0
    export = ["export", str(colors.out), "--format", "csv", "--out", str(colors.root / "e.csv")]
    assert main(export) == 0
    for file in (colors.out / "predictions.csv", colors.root / "copy.csv", colors.root / "e.csv"):
        cells = [cell for row in csv.reader(io.StringIO(file.read_text())) for cell in row]
        assert "'=HYPERLINK(1)" in cells
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
