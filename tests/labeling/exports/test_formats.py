"""Formats that predictions are exported to."""

import csv
import sys
from importlib import import_module

import pytest

from protorect import MissingExtraError, OptionError
from protorect.labeling.exports import FORMATS, check_format, export
from protorect.labeling.prediction import COLUMNS, Prediction

ROWS = (
    Prediction("a, b.jpg", "cat", 0.912345, "dog", 0.8, 0.75, "cat"),
    Prediction("c.jpg", "dog", 0.4, "cat", 0.1, 0.01, "_unknown"),
)
ROUNDED = [["a, b.jpg", "cat", 0.9123, "dog", 0.8, 0.75, "cat", 0.25]]
ROUNDED += [["c.jpg", "dog", 0.4, "cat", 0.1, 0.01, "_unknown", 0.99]]


def test_csv(tmp_path):
    export(ROWS, tmp_path / "p.csv", "csv")
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == list(COLUMNS)
    assert rows == [list(map(str, row)) for row in ROUNDED]


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export(ROWS, tmp_path / "p.parquet", "parquet")
    table = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert list(table) == list(COLUMNS)
    assert [list(row) for row in zip(*table.values(), strict=True)] == ROUNDED


def test_an_unknown_format_suggests_the_nearest(tmp_path):
    with pytest.raises(OptionError, match="unknown export format 'parket'. Did you mean 'parquet'"):
        export(ROWS, tmp_path / "p", "parket")
    assert not list(tmp_path.iterdir())


def test_a_format_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'protorect\[parquet\]'"):
        check_format("parquet")
    with pytest.raises(MissingExtraError):
        export(ROWS, tmp_path / "p.parquet", "parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", FORMATS)
def test_a_failed_export_leaves_the_file_as_it_was(tmp_path, monkeypatch, name):
    path = tmp_path / "p"
    path.write_text("before")
    module = import_module(f"protorect.labeling.exports.{name.replace('-', '_')}")
    write = module.write

    def write_and_fail(rows, temporary):
        write(rows, temporary)
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(module, "write", write_and_fail)
    with pytest.raises(RuntimeError, match="the disk is full"):
        export(ROWS, path, name)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
