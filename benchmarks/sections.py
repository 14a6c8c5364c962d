"""What can be measured, in the order of the page.

A section is a module of this package with

- `measure(small)`, which gives figures that JSON can hold, from little work if `small`;
- `text(figures)`, which gives the section's part of the page in Markdown.

To add one, write the module and name it here.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

SECTIONS = {
    "episodes": "Episodes",
    "methods": "Methods",
    "training": "Training",
    "extraction": "Extraction",
    "preparing": "Preparing data sets",
    "sort_speed": "Sorting pictures",
}


def section(name: str) -> ModuleType:
    """The module that measures a section; imported only now, for some import torch."""
    return import_module(f"benchmarks.{name}")
