"""The sections of docs/performance.md.

A section is a module of this package with

- `measure(small)`, which returns measurements that JSON can hold, from little work if `small`;
- `tables(measured)`, which returns the tables by the name of their region in the document.

To add one, write the module, name it here, and write its text in docs/performance.md.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from protorect.report.table import Table

SECTIONS = (
    "episodes",
    "methods",
    "training",
    "extraction",
    "preparing",
    "embedding_speed",
    "sort_speed",
    "many_pictures",
    "labeling",
    "labeling_page",
)


def section(name: str) -> ModuleType:
    """The module that measures a section; imported only now, as some import torch."""
    return import_module(f"benchmarks.{name}")


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """The tables of all sections, and the machine that each was measured on."""
    parts = {name: results[name] for name in SECTIONS if name in results}
    machines = [[name.replace("_", " "), *_machine(part)] for name, part in parts.items()]
    header = ["section", "threads", "torch", "Python", "processor"]
    document = {"machines": Table("", header, machines)}
    for name, part in parts.items():
        document |= section(name).tables(part["figures"])
    return document


def _machine(part: dict[str, Any]) -> list[str]:
    return [str(part["machine"][key]) for key in ("threads", "torch", "python", "processor")]
