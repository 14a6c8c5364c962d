"""`python -m benchmarks.plus_study FEATURES...`: bd-cspn-plus against others and without its parts.

Give features of validation classes only. Writes results/plus.json and the tables of docs/plus.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.documents import save_results
from protorect._utils.versions import versions
from protorect.core.statistics import paired_difference
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.features import load_features
from protorect.report.table import Table

PLUS = "bd-cspn-plus"
COMPARED = (
    "cspn",
    "bd-i:weighting=classes",
    "bd-cspn-classes",
    "pt-map",
    "tim-adm",
    PLUS,
)
WITHOUT = (
    f"{PLUS}:tolerance=0.000001",  # never the balanced assumption
    f"{PLUS}:tolerance=1000000",  # always the balanced assumption
    f"{PLUS}:regression_iterations=1",  # no regression
    f"{PLUS}:regression_iterations=30",  # the regression solved
    f"{PLUS}:held_out=false",  # always the regression
    f"{PLUS}:iterations=1",
    f"{PLUS}:iterations=10",
    f"{PLUS}:joining=100000",  # all predicted queries join
    f"{PLUS}:power=0",  # all that join have equal weights
)
GRADIENT_METHODS = ("tim", "alpha-tim", PLUS)
SETTINGS: dict[str, dict[str, Any]] = {
    "balanced": {},
    "Dirichlet 2": {"dirichlet": 2.0},
    "Dirichlet 1": {"dirichlet": 1.0},
    "1 distractor": {"distractors": 1},
    "5 distractors": {"distractors": 5},
    "1 query per class": {"query": 1},
    "3 per class, Dirichlet 1": {"query": 3, "dirichlet": 1.0},
    "20 ways": {"way": 20},
    "20 ways, Dirichlet 1": {"way": 20, "dirichlet": 1.0},
    "50 ways": {"way": 50},
    "200 ways": {"way": 200, "query": 10},
    "200 ways, Dirichlet 2": {"way": 200, "query": 10, "dirichlet": 2.0},
}
SETTINGS_OF_GRADIENT_METHODS = ("balanced", "Dirichlet 2", "Dirichlet 1")
SHOTS = (1, 5)


def main() -> None:
    """Measure, and write the results and the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=300)
    options = parser.parse_args()
    few = options.episodes // 3  # a thousand steps each
    settings = {name: SETTINGS[name] for name in SETTINGS_OF_GRADIENT_METHODS}
    results = {
        "episodes": options.episodes,
        "sets": {
            path.stem: measure(path, [*COMPARED, *WITHOUT], SETTINGS, options.episodes)
            for path in options.features
        },
        "episodes_of_gradient_methods": few,
        "gradient_methods": {
            path.stem: measure(path, list(GRADIENT_METHODS), settings, few)
            for path in options.features
        },
        "versions": versions(),
    }
    save_results("plus", results)


def measure(
    path: Path, methods: list[str], settings: dict[str, dict[str, Any]], episodes: int
) -> dict[str, Any]:
    """Accuracy of every method by setting and shot; a setting with too few classes is left out."""
    features, labels = load_features(path)
    measured = {}
    for setting, shape in settings.items():
        count = episodes * 4 // shape["way"] if "way" in shape else episodes
        try:
            results = evaluate(features, labels, methods, shot=SHOTS, episodes=count, **shape)
        except ValueError as error:
            print(f"{path.stem}, {setting}: {error}")
            continue
        print(f"{path.stem}, {setting}", flush=True)
        measured[setting] = {str(k): _by_method([r for r in results if r.shot == k]) for k in SHOTS}
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
    """Accuracies, gradient methods, differences without each part, and where others are better."""
    sets, gradient = results["sets"], results["gradient_methods"]
    many = f"{results['episodes']} episodes at 5 ways"
    few = f"{results['episodes_of_gradient_methods']} episodes"
    return {
        "accuracy": _tables(sets, _accuracy, lambda name: not _is_variant(name), many),
        "gradient-methods": _tables(gradient, _accuracy, lambda _: True, few),
        "variants": _tables(sets, _difference, _is_variant, ""),
        "better": Table(
            "Points by which the method is better, with the 95 % interval of the difference.",
            ["features and setting", "method", "better by"],
            [*_better(sets), *_better(gradient)],
        ),
    }


def _tables(
    sets: dict[str, Any],
    cell: Callable[[dict[str, Any]], str],
    chosen: Callable[[str], bool],
    caption: str,
) -> list[Table]:
    """One table per feature set: one row per method, one column per setting, 1-shot / 5-shot."""
    return [
        Table(
            f"{caption}; every entry is within ± {_widest(settings):.1f} (95 %)."
            if caption
            else "",
            [f"`{title}`", *settings],
            [
                [f"`{name}`"]
                + [
                    " / ".join(cell(by_shot[str(k)][name]) for k in SHOTS)
                    for by_shot in settings.values()
                ]
                for name in next(iter(settings.values()))["1"]
                if chosen(name)
            ],
        )
        for title, settings in sets.items()
    ]


def _is_variant(name: str) -> bool:
    return name.startswith(f"{PLUS}:")


def _accuracy(figures: dict[str, Any]) -> str:
    return f"{figures['accuracy']:.1f}"


def _difference(figures: dict[str, Any]) -> str:
    mean, ci95 = figures["minus_plus"]
    return f"{mean:+.1f}{'*' if abs(mean) > ci95 else ''}"


def _widest(settings: dict[str, Any]) -> float:
    by_method = [by_shot[str(k)] for by_shot in settings.values() for k in SHOTS]
    return max(figures["ci95"] for methods in by_method for figures in methods.values())


def _better(sets: dict[str, Any]) -> list[list[str]]:
    """Where another method is better by more than the interval of the difference."""
    rows = []
    for title, settings in sets.items():
        for setting, by_shot in settings.items():
            for shot, by_method in by_shot.items():
                for name, figures in by_method.items():
                    mean, ci95 = figures["minus_plus"]
                    if not name.startswith(PLUS) and mean > ci95:
                        where = f"`{title}`, {setting}, {shot}-shot"
                        rows.append([where, f"`{name}`", f"{mean:.1f} ± {ci95:.1f}"])
    return rows


if __name__ == "__main__":
    main()
