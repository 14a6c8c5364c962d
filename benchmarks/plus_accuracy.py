"""The tables of docs/plus-accuracy.md: bd-cspn-plus on every feature set, and its constants.

They are made from results/plus.json, which `python -m benchmarks.plus_study` measures, and
results/plus_constants.json of `python -m benchmarks.plus_constants`.
"""

from __future__ import annotations

from typing import Any

from benchmarks.documents import load_results
from benchmarks.plus_constants import constants_table
from benchmarks.plus_study import PLUS, accuracies, accuracy_table, cells_of
from protorect.report.table import Table


def tables(results: dict[str, Any]) -> dict[str, Table | list[Table]]:
    """One table per feature set, and the constants."""
    return {
        "accuracy": _of_sets(results["sets"]),
        "held-back": _of_sets(results.get("held_back", {})),
        "constants": constants_table(load_results("plus_constants")),
    }


def _of_sets(sets: dict[str, Any]) -> list[Table]:
    return [_of_set(name, {name: settings}) for name, settings in sets.items()]


def _of_set(name: str, sets: dict[str, Any]) -> Table:
    cells = cells_of(sets)
    widest = max(cell.methods[PLUS]["ci95"] for cell in cells)
    return accuracy_table(
        f"Every accuracy of {PLUS} is within ± {widest:.1f} (95 %).",
        f"`{name}`",
        {(cell.setting, cell.shot): accuracies(cell.methods) for cell in cells},
    )
