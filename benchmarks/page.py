"""docs/performance.md, made from the figures in results/performance.json."""

from __future__ import annotations

from typing import Any

from benchmarks.sections import SECTIONS, section

HEAD = """\
# Speed and memory

Made by `make bench`; do not edit. Figures are medians of rounds; each round measures the code and \
what it is compared with one after the other, so that a busy machine slows both.
"""
MACHINE = "{threads} threads, torch {torch}, Python {python}, {processor}."


def performance_page(figures: dict[str, Any]) -> str:
    """The page in Markdown; `figures` has, by section, the machine and what was measured."""
    parts = [HEAD]
    for name, title in SECTIONS.items():
        if name in figures:
            machine = MACHINE.format(**figures[name]["machine"])
            text = section(name).text(figures[name]["figures"])
            parts.append(f"## {title}\n\n{text}\nMeasured on {machine}\n")
    return "\n".join(parts)
