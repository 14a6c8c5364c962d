"""`python -m benchmarks.plus_constants PICTURES-NETWORK.npz ...`: choose without a network.

Every constant of bd-cspn-plus is varied on its own. The value that is best on the sets of all
networks but one, and without the pictures of a set, is compared with the default on the sets left
out. Give features of validation classes only; a file is named after its pictures and its network.
Writes results/plus_constants.json and the tables of docs/plus.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration_study import SETTINGS
from benchmarks.documents import RESULTS, write_document
from protorect._utils.files import write_text
from protorect._utils.versions import versions
from protorect.core.statistics import mean_interval
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.features import feature_table
from protorect.report.table import Table

PLUS = "bd-cspn-plus"
VALUES: dict[str, tuple[float, ...]] = {
    "tolerance": (0.016, 0.06),
    "imbalance": (0.28, 0.56),
    "joining": (8, 18),
    "scale": (7, 15),
    "sharpness": (14, 28),
}
SHOTS = (1, 5)


def main() -> None:
    """Measure, and write the results and the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=40)
    options = parser.parse_args()
    results = {
        "episodes": options.episodes,
        "values": VALUES,
        "sets": {path.stem: measure(path, options.episodes) for path in options.features},
        "versions": versions(),
    }
    write_text(RESULTS / "plus_constants.json", json.dumps(results, indent=1) + "\n")
    write_document("plus-accuracy")


def measure(path: Path, episodes: int) -> dict[str, list[float]]:
    """Differences to the defaults in every cell, by constant and value."""
    table = feature_table(path)
    specs = [f"{name}={value:g}" for name, values in VALUES.items() for value in values]
    differences: dict[str, list[float]] = {spec: [] for spec in specs}
    for setting, given in SETTINGS.items():
        shape = {"way": 5, "query": 15, **given}
        for shot in SHOTS:
            methods = [PLUS, *(f"{PLUS}:{spec}" for spec in specs)]
            count = max(8, episodes * 5 // shape["way"])
            try:
                default, *others = evaluate(
                    table, methods=methods, shot=shot, episodes=count, seed=2, **shape
                )
            except ValueError:  # too few classes, or too few samples of a class
                continue
            for spec, result in zip(specs, others, strict=True):
                differences[spec].append(result.accuracy - default.accuracy)
        print(path.stem, setting, flush=True)
    return differences


def constants_table(results: dict[str, Any]) -> Table:
    """One row per constant: what would be chosen without a set, and what that gains on it."""
    sets = {tuple(name.split("-", 1)): cells for name, cells in results["sets"].items()}
    rows = []
    for constant, values in results["values"].items():
        chosen, gains = [], []
        for (pictures, network), own in sets.items():
            others = [
                cells for key, cells in sets.items() if key[0] != pictures and key[1] != network
            ]
            means = {0.0: "default"}
            for value in values:
                spec = f"{constant}={value:g}"
                means[float(np.mean([np.mean(cells[spec]) for cells in others]))] = spec
            best = means[max(means)]
            chosen.append(best.partition("=")[2] or best)
            gains.append(0.0 if best == "default" else float(np.mean(own[best])))
        counts = ", ".join(f"{one} ({chosen.count(one)})" for one in dict.fromkeys(chosen))
        mean, ci95 = mean_interval(np.array(gains))
        everywhere = []
        for value in values:
            means_of_sets = [np.mean(cells[f"{constant}={value:g}"]) for cells in sets.values()]
            everywhere.append(f"{value:g}: {np.mean(means_of_sets):+.2f}")
        row = [f"`{constant}`", ", ".join(everywhere), counts, f"{mean:+.2f} ± {ci95:.2f}"]
        rows.append([*row, f"{min(gains):+.2f}"])
    return Table(
        f"{len(sets)} sets; in brackets the number of sets for which a value would be chosen.",
        ["constant", "other values, all sets", "chosen without a set", "gain on it", "lowest"],
        rows,
    )


if __name__ == "__main__":
    main()
