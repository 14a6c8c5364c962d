"""Attacks on the whole program: faults at every file operation, concurrency, damaged files, bombs.

A part is a module of this package, named in `PARTS`, with

- `run(seconds)`, which attacks for at most so long and returns what JSON can hold: its counts, and
  `failures`, a list with one sentence per attack that was not withstood;
- `tables(measured)`, which returns the table of docs/reliability.md by the name of its region, that
  of the part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from protorect.report.table import Table

# Every part in its order, and its share of the seconds that are left when it begins: each has some,
# whatever the others took. All together take less than 20 minutes.
PARTS = {"bombs": 90, "concurrency": 60, "faults": 390, "fuzz": 600}


_NOT_RUN = "Not run yet."


def seconds_of(name: str, names: Sequence[str], left: float) -> float:
    """How long a part may take if it and those after it in `names` have so many seconds."""
    still = names[names.index(name) :]
    return max(0.0, left) * PARTS[name] / sum(PARTS[one] for one in still)


def part(name: str) -> ModuleType:
    """The module of a part; imported only now, as some import torch."""
    return import_module(f"campaign.{name}")


def tables(results: dict[str, Any]) -> dict[str, Table | str]:
    """The tables of docs/reliability.md."""
    document: dict[str, Table | str] = dict.fromkeys(PARTS, _NOT_RUN)
    for name in results:
        document |= part(name).tables(results[name])
    mutants = _mutants()
    return document | (part("mutants").tables(mutants) if mutants else {"mutants": _NOT_RUN})


def _mutants() -> dict[str, Any]:
    """What `python -m campaign.mutants` has written, which is not part of the campaign itself."""
    path = Path(__file__).parents[1] / "results" / "mutants.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}
