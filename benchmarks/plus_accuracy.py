"""The tables of docs/plus-accuracy.md: bd-cspn-plus against others, one table per feature set.

They are made from results/plus.json, which `python -m benchmarks.plus_study` measures.
"""

from __future__ import annotations

from typing import Any

from benchmarks.plus_study import PLUS, accuracies, accuracy_table, cells_of
from protorect.report.table import Table


def tables(results: dict[str, Any]) -> dict[str, list[Table]]:
    """One table per feature set."""
    sets = {name: {name: settings} for name, settings in results["sets"].items()}
    return {"accuracy": [_of_set(name, one) for name, one in sets.items()]}


def _of_set(name: str, sets: dict[str, Any]) -> Table:
    cells = cells_of(sets)
    widest = max(cell.methods[PLUS]["ci95"] for cell in cells)
    return accuracy_table(
        f"Every accuracy of {PLUS} is within ± {widest:.1f} (95 %).",
        f"`{name}`",
        {(cell.setting, cell.shot): accuracies(cell.methods) for cell in cells},
    )
