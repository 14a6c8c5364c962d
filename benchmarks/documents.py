"""`python -m benchmarks.documents`: write the tables of the documents from the measured results.

The text of a document is written by hand. What stands between `<!-- generated: NAME -->` and
`<!-- end -->` is made from files in results/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from protorect._utils.files import write_text
from protorect.report.table import Table, markdown_table

ROOT = Path(__file__).parents[1]
RESULTS, DOCS = ROOT / "results", ROOT / "docs"
START, END = "<!-- generated: ", "<!-- end -->"
# The module whose function `tables` makes the tables of a document from the results of this name.
MODULES = {
    "calibration": "benchmarks.calibration_study",
    "campaign": "campaign",
    "effort": "benchmarks.effort",
    "fine-tuning": "benchmarks.fine_tuning",
    "label": "benchmarks.scripted_user",
    "networks": "benchmarks.networks_document",
    "performance": "benchmarks.performance",
    "plus": "benchmarks.plus_study",
    "plus-accuracy": "benchmarks.plus_accuracy",
    "sort": "benchmarks.sorting",
    "tuning": "benchmarks.tuning",
}
NAMES = {"campaign": "reliability"}  # documents with another name than their results
SOURCES = {"plus-accuracy": "plus"}  # second documents of the same results


def main() -> None:
    """Write all documents that are made from results alone."""
    from benchmarks.networks_document import plot as networks_figure
    from benchmarks.trainings import write_trainings

    for name in MODULES:
        write_document(name)
    write_text(DOCS / "figures" / "networks.svg", networks_figure(load_results("networks")))
    write_trainings()
    for path, text in comparison_files().items():
        write_text(path, text)


def load_results(name: str) -> dict[str, Any]:
    """The content of results/NAME.json, empty if nothing was measured yet."""
    path = RESULTS / f"{name}.json"
    results: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return results


def save_results(name: str, results: Mapping[str, Any]) -> None:
    """Write results/NAME.json and the tables of its documents."""
    write_text(RESULTS / f"{name}.json", json.dumps(results, indent=1) + "\n")
    for one in MODULES:
        if SOURCES.get(one, one) == name:
            write_document(one)


def write_document(name: str) -> None:
    """Fill the tables of a document from its results."""
    write_text(document_path(name), document(name))


def document(name: str) -> str:
    """The text of a document with its tables made from its results."""
    tables = import_module(MODULES[name]).tables(load_results(SOURCES.get(name, name)))
    return fill(document_path(name).read_text("utf-8"), tables)


def document_path(name: str) -> Path:
    """The document of this name among `MODULES`."""
    return DOCS / f"{NAMES.get(name, name)}.md"


def fill(text: str, tables: Mapping[str, Table | list[Table] | str]) -> str:
    """Replace every generated region of a document by the tables, or the text, of its name."""
    head, *parts = text.split(START)
    names, filled = [], [head]
    for part in parts:
        name, _, region = part.partition(" -->")
        _, end, rest = region.partition(END)
        if not end or name not in tables:
            raise ValueError(f"region {name!r} has no table or no {END}.")
        names.append(name)
        filled.append(f"{START}{name} -->\n\n{_markdown(tables[name])}\n\n{END}{rest}")
    if sorted(names) != sorted(tables):
        raise ValueError(f"the document has regions {names}, the tables are {list(tables)}.")
    return "".join(filled)


def _markdown(tables: Table | list[Table] | str) -> str:
    if isinstance(tables, str):
        return tables
    if isinstance(tables, list):
        return "\n\n".join(map(_markdown, tables))
    caption = f"\n\n*{tables.caption}*" if tables.caption else ""
    return markdown_table(tables) + caption


def comparison_files() -> dict[Path, str]:
    """docs/comparison.md and its figures, as `protorect compare` writes them with the results."""
    import numpy as np

    from protorect.evaluation.compare import Column, Comparison
    from protorect.evaluation.evaluate import Result
    from protorect.report.comparison import comparison_page
    from protorect.report.page import render_markdown

    document = load_results("compare")
    columns = []
    for column in document["columns"]:
        results = []
        for record in column["results"]:
            episodes = record.pop("episodes")
            per_episode = np.full(episodes, record["accuracy"])
            predictions = np.zeros((episodes, 0), np.int32)
            results.append(Result(**record, per_episode=per_episode, predictions=predictions))
        origin = column.get("pictures", "")
        names = column["features"], column["world"], column["shot"]
        columns.append(Column(*names, tuple(results), origin))
    methods = tuple(result.method for result in columns[0].results)
    page = comparison_page(Comparison(methods, tuple(columns)), document["settings"])
    text, figures = render_markdown(page, "figures/comparison")
    return {DOCS / name: content for name, content in {"comparison.md": text, **figures}.items()}


if __name__ == "__main__":
    main()
