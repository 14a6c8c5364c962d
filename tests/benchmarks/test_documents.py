"""The tables of the documents are made from the results, and the committed ones are up to date."""

import pytest
from benchmarks.documents import (
    MODULES,
    comparison_files,
    document,
    document_path,
    fill,
    load_results,
)
from benchmarks.trainings import DOCUMENT, trainings_document

from protorect.report.table import Table
from protorect.uncertainty.classify import DEFAULT_METHOD
from protorect.uncertainty.thresholds import Thresholds

TEXT = "Text.\n\n<!-- generated: a -->\nold\n<!-- end -->\n\nMore text.\n"
TABLE = Table("caption", ["x", "y"], [["one", "1"]])
REMEDY = "run python -m benchmarks.documents"


@pytest.mark.parametrize("name", MODULES)
def test_document_is_up_to_date(name):
    assert document_path(name).read_text() == document(name), REMEDY


def test_document_of_trainings_is_up_to_date():
    assert DOCUMENT.read_text() == trainings_document(), REMEDY


def test_comparison_of_methods_and_its_figures_are_up_to_date():
    files = comparison_files()
    assert len(files) == 6  # the page, ranks, speed, and a heat map per setting
    for path, text in files.items():
        assert path.read_text() == text, REMEDY


def test_sorting_was_measured_with_the_defaults():
    results = load_results("sort")
    remedy = "run python -m benchmarks.sorting again"
    assert results["method"] == DEFAULT_METHOD, remedy
    defaults = {"unknown": Thresholds().unknown, "unsure": Thresholds().unsure}
    assert results["thresholds"] == defaults, remedy


def test_only_the_region_is_replaced():
    filled = fill(TEXT, {"a": TABLE})
    table = "| x | y |\n| --- | ---: |\n| one | 1 |\n\n*caption*"
    assert filled == TEXT.replace("\nold\n", f"\n\n{table}\n\n")
    assert fill(filled, {"a": TABLE}) == filled


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        pytest.param(TEXT, {}, id="region without table"),
        pytest.param(TEXT, {"a": TABLE, "b": TABLE}, id="table without region"),
        pytest.param(TEXT.replace("<!-- end -->", ""), {"a": TABLE}, id="region without end"),
    ],
)
def test_a_region_without_table_or_a_table_without_region_is_an_error(text, tables):
    with pytest.raises(ValueError, match="region"):
        fill(text, tables)
