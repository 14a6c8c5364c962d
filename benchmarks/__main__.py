"""`python -m benchmarks [SECTION ...]`: measure, keep the figures and write docs/performance.md.

Without a section, all are measured; the figures of those that are not measured stay as they are.
Worker processes import this file anew, so it imports nothing heavy.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

from benchmarks.sections import SECTIONS, section

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "results" / "performance.json"
PAGE = ROOT / "docs" / "performance.md"


def main() -> None:
    """Measure, and make the page from the figures that were kept."""
    from benchmarks.page import performance_page
    from protorect._utils.files import write_text
    from protorect._utils.memory import keep_freed_memory

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    wanted = parser.parse_args().sections or list(SECTIONS)
    for name in wanted:
        if name not in SECTIONS:
            parser.error(f"there is no section {name}; there are {', '.join(SECTIONS)}")
    keep_freed_memory()
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for name in wanted:
        print(f"measuring {name} ...", flush=True)
        figures[name] = {"machine": _machine(), "figures": section(name).measure()}
        write_text(FIGURES, json.dumps(figures, indent=2) + "\n")
    write_text(PAGE, performance_page(figures))
    print(PAGE.read_text(encoding="utf-8"))


def _machine() -> dict[str, Any]:
    import torch

    return {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": platform.machine(),
    }


if __name__ == "__main__":
    main()
