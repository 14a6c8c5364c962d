"""`python -m benchmarks`: measure, print, keep the figures and write docs/performance.md."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import torch

from benchmarks.cases import CASES, measure_case, measure_pile
from benchmarks.page import performance_page
from protorect.files import write_text
from protorect.memory import keep_freed_memory

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "results" / "performance.json"


def main() -> None:
    """Measure everything; the page is made from the figures that were kept."""
    keep_freed_memory()
    figures = {
        "machine": {"threads": torch.get_num_threads(), "torch": torch.__version__},
        "system": {"python": platform.python_version(), "processor": platform.machine()},
        "episodes": [],
    }
    for case in CASES:
        print(f"measuring {case.name} ...", flush=True)
        figures["episodes"].append(measure_case(case))
    print("measuring one pile of a million ...", flush=True)
    figures["pile"] = measure_pile()
    write_text(FIGURES, json.dumps(figures, indent=2) + "\n")
    page = performance_page(figures)
    write_text(ROOT / "docs" / "performance.md", page)
    print(page)


if __name__ == "__main__":
    main()
