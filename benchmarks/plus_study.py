"""`python -m benchmarks.plus_study FEATURES...`: bd-cspn-plus against others and without its parts.

Give features of validation classes only; with --held-back, features that no choice was made on are
measured instead. Writes results/plus.json and the tables of docs/plus.md and docs/plus-accuracy.md.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.documents import load_results, save_results
from protorect._utils.versions import versions
from protorect.core.statistics import NORMAL_95, paired_difference
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.features import feature_table
from protorect.report.table import Table

PLUS = "bd-cspn-plus"
LINEAR = ("cspn", "ridge", "logistic")  # these classify each query on its own
OTHERS = ("bd-cspn-classes", "pt-map", "tim-adm")
WITHOUT = {
    "no balanced assumption": f"{PLUS}:tolerance=0.000001",
    "no class proportions": f"{PLUS}:imbalance=1000000",
    "always the regression": f"{PLUS}:held_out=false",
    "always prototypes": f"{PLUS}:regression_iterations=1",
    "one round": f"{PLUS}:iterations=1",
    "all predicted queries join": f"{PLUS}:joining=100000",
    "30 steps of the regression": f"{PLUS}:regression_iterations=30",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "balanced": {},
    "Dirichlet 2": {"dirichlet": 2.0},
    "Dirichlet 1": {"dirichlet": 1.0},
    "1 distractor": {"distractors": 1},
    "5 distractors": {"distractors": 5},
    "2 of 5 classes present": {"present": 2},
    "20 ways": {"way": 20},
    "20 ways, Dirichlet 1": {"way": 20, "dirichlet": 1.0},
    "100 ways": {"way": 100, "query": 5},
}
SHOTS = (1, 2, 3, 5, 10, 20, 50)
SHOTS_OF_PARTS, SETTINGS_OF_PARTS = (1, 5), (0, 2, 4, 5)  # of the comparison without each part
QUERIES = 15


class Cell(NamedTuple):
    """The results of one feature set in one setting with one number of labels per class."""

    features: str
    setting: str
    shot: int
    methods: dict[str, dict[str, Any]]  # accuracy, ci95 and minus_plus by method


def main() -> None:
    """Measure, and write the results and the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--held-back", action="store_true", help="no choice was made on them")
    options = parser.parse_args()
    measured = {path.stem: measure(path, options.episodes) for path in options.features}
    sets = {"held_back" if options.held_back else "sets": measured}
    about = {"episodes": options.episodes, "versions": versions()}
    save_results("plus", load_results("plus") | sets | about)


def measure(path: Path, episodes: int) -> dict[str, Any]:
    """Accuracy of every method by setting and shot; what a set is too small for is left out."""
    table, measured = feature_table(path), dict[str, Any]()
    for number, (setting, given) in enumerate(SETTINGS.items()):
        shape = {"way": 5, "query": QUERIES, **given}
        count = max(10, episodes * 5 // shape["way"])
        by_shot = {}
        for shot in SHOTS:
            methods = [*LINEAR, *OTHERS, PLUS]
            if shot in SHOTS_OF_PARTS and number in SETTINGS_OF_PARTS:
                methods += WITHOUT.values()
            try:
                results = evaluate(table, methods=methods, shot=shot, episodes=count, **shape)
            except ValueError:  # too few classes, or too few samples of a class
                continue
            by_shot[str(shot)] = _by_method(results)
            print(
                path.stem, setting, shot, round(by_shot[str(shot)][PLUS]["accuracy"], 1), flush=True
            )
        if by_shot:
            measured[setting] = by_shot
    return measured


def _by_method(results: list[Any]) -> dict[str, Any]:
    plus = next(result for result in results if result.method == PLUS)
    return {
        result.method: {
            "accuracy": result.accuracy,
            "ci95": result.ci95,
            "minus_plus": paired_difference(result.per_episode, plus.per_episode),
        }
        for result in results
    }


def tables(results: dict[str, Any]) -> dict[str, Table | list[Table]]:
    """Mean accuracies, differences without each part, and where others are better."""
    cells, held_back = cells_of(results["sets"]), cells_of(results.get("held_back", {}))
    return {
        "accuracy": _mean_accuracies(cells),
        "without": _without(cells),
        "held-back": _mean_accuracies(held_back),
        "better": _better(cells + held_back),
    }


def cells_of(sets: dict[str, Any]) -> list[Cell]:
    """The measured cells, set by set."""
    return [
        Cell(name, setting, int(shot), methods)
        for name, settings in sets.items()
        for setting, by_shot in settings.items()
        for shot, methods in by_shot.items()
    ]


def accuracies(methods: dict[str, Any]) -> tuple[float, float, float]:
    """Accuracy of bd-cspn-plus, of the best linear classifier, and of the best other method."""
    linear, others = (max(methods[n]["accuracy"] for n in names) for names in (LINEAR, OTHERS))
    return methods[PLUS]["accuracy"], linear, others


def accuracy_table(
    caption: str, corner: str, values: dict[tuple[str, int], tuple[float, float, float]]
) -> Table:
    """One row per setting, one column per number of labels; bd-cspn-plus in bold."""
    shots = sorted({shot for _, shot in values})
    rows = [
        [setting, *(_three(values.get((setting, shot))) for shot in shots)]
        for setting in dict.fromkeys(setting for setting, _ in values)
    ]
    return Table(caption, [corner, *map(str, shots)], rows)


def _three(values: tuple[float, float, float] | None) -> str:
    if values is None:
        return ""
    plus, linear, others = values
    return f"**{plus:.1f}** {linear:.1f} {others:.1f}"


def _mean_accuracies(cells: list[Cell]) -> Table:
    """Means over the feature sets that have enough samples for a cell."""
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for cell in cells:
        found.setdefault((cell.setting, cell.shot), []).append(accuracies(cell.methods))
    return accuracy_table(
        "Means over the feature sets with enough samples, which are fewer from 10 labels on: "
        "columns are not comparable with each other.",
        "setting",
        {key: tuple(np.mean(rows, axis=0).tolist()) for key, rows in found.items()},
    )


def _without(cells: list[Cell]) -> Table:
    """The mean over the feature sets of the points lost without each part."""
    settings = [list(SETTINGS)[number] for number in SETTINGS_OF_PARTS]
    rows = []
    for part, name in WITHOUT.items():
        # `evaluate` writes the values of options in its own way.
        row = [f"{part} (`{name.partition(':')[2]}`)"]
        for setting in settings:
            for shot in SHOTS_OF_PARTS:
                found = [c for c in cells if (c.setting, c.shot) == (setting, shot)]
                row.append(_mean_difference([_minus_plus(cell, name) for cell in found]))
        rows.append(row)
    header = [f"{setting}, {shot}" for setting in settings for shot in SHOTS_OF_PARTS]
    return Table(
        "Points against bd-cspn-plus on the same episodes, mean over the feature sets; a star "
        "marks a difference whose 95 % interval excludes zero.",
        ["without", *header],
        rows,
    )


def _minus_plus(cell: Cell, spec: str) -> tuple[float, float]:
    option, value = spec.partition(":")[2].split("=")
    for name, figures in cell.methods.items():
        prefix, _, listed = name.partition(":")
        if prefix == PLUS and listed.partition("=")[0] == option:
            written = listed.partition("=")[2]
            if written == value or _number(written) == _number(value):
                return tuple(figures["minus_plus"])
    raise ValueError(f"{spec} was not measured")


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _mean_difference(differences: list[tuple[float, float]]) -> str:
    if not differences:
        return ""
    mean = float(np.mean([mean for mean, _ in differences]))
    ci95 = math.sqrt(sum(ci95**2 for _, ci95 in differences)) / len(differences)
    return f"{mean:+.1f}{'*' if abs(mean) > ci95 else ''}"


def _better(cells: list[Cell]) -> Table:
    """Where another method is better, by Holm's correction over the cells of a feature set."""
    rows = []
    for features in dict.fromkeys(cell.features for cell in cells):
        own = [cell for cell in cells if cell.features == features]
        for name in (*LINEAR, *OTHERS):
            differences = [cell.methods[name]["minus_plus"] for cell in own]
            for cell, (mean, ci95), better in zip(
                own, differences, _holm(differences), strict=True
            ):
                if better:
                    where = f"`{features}`, {cell.setting}, {cell.shot} labels"
                    rows.append([where, f"`{name}`", f"{mean:.1f} ± {ci95:.1f}"])
    return Table(
        "Points by which the method is better, with the 95 % interval of the difference.",
        ["features, setting, labels per class", "method", "better by"],
        rows,
    )


def _holm(differences: list[tuple[float, float]]) -> list[bool]:
    """Which means are above zero at 5 % after Holm's correction (one-sided)."""
    p = [
        0.5 * math.erfc(mean * NORMAL_95 / ci95 / math.sqrt(2)) if ci95 > 0 else float(mean <= 0)
        for mean, ci95 in differences
    ]
    rejected = [False] * len(p)
    for rank, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[i] > 0.025 / (len(p) - rank):
            break
        rejected[i] = True
    return rejected


if __name__ == "__main__":
    main()
