"""`python -m campaign [PART ...]`: attack the program, and write the counts.

Writes results/campaign.json and the tables of docs/reliability.md. Without a part, all are run; the
results of the others stay. Exits with 1 if an attack was not withstood.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from campaign import PARTS, part, seconds_of


def main() -> int:
    """Run the parts, and write the results and the document after each."""
    from benchmarks.documents import load_results, save_results

    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    names = parser.parse_args().parts or list(PARTS)
    for name in names:
        if name not in PARTS:
            parser.error(f"there is no part {name}; there are {', '.join(PARTS)}")
    failures, end = 0, time.monotonic() + sum(PARTS[name] for name in names)
    for name in names:
        start = time.monotonic()
        seconds = seconds_of(name, names, end - start)
        print(f"{name}, {seconds:.0f} s ...", flush=True)
        measured = part(name).run(seconds)
        measured["seconds"] = round(time.monotonic() - start)
        print(json.dumps(measured, indent=1), flush=True)
        failures += len(measured["failures"])
        save_results("campaign", load_results("campaign") | {name: measured})
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
