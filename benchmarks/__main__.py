"""`python -m benchmarks [SECTION ...]`: measure speed and memory.

Writes results/performance.json and the tables of docs/performance.md. Without a section, all are
measured; the results of the others stay. Worker processes import this file again, so it imports
nothing heavy.
"""

from __future__ import annotations

import argparse

from benchmarks.performance import SECTIONS, section


def main() -> None:
    """Measure, and write the results and the document after each section."""
    from benchmarks.documents import load_results, save_results
    from protorect._utils.memory import keep_freed_memory
    from protorect._utils.versions import versions

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    names = parser.parse_args().sections or list(SECTIONS)
    for name in names:
        if name not in SECTIONS:
            parser.error(f"there is no section {name}; there are {', '.join(SECTIONS)}")
    keep_freed_memory()
    results = load_results("performance")
    for name in names:
        print(f"measuring {name} ...", flush=True)
        results[name] = {"machine": versions(), "figures": section(name).measure()}
        save_results("performance", results)


if __name__ == "__main__":
    main()
