"""`python -m benchmarks.plus_study FEATURES...`: what each part of bd-cspn-plus does, and where.

Give features of validation classes only. Writes results/plus.json and docs/plus.md from it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.plus_page import plus_page
from protorect._utils.files import write_text
from protorect._utils.versions import versions
from protorect.core.statistics import paired_difference
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.features import load_features

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "results" / "plus.json"
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
    f"{PLUS}:tolerance=0.000001",  # never the equal reading
    f"{PLUS}:tolerance=1000000",  # always the equal reading
    f"{PLUS}:steps=1",  # no regression
    f"{PLUS}:steps=30",  # the regression solved
    f"{PLUS}:held_out=false",  # the regression always followed
    f"{PLUS}:rounds=1",
    f"{PLUS}:rounds=10",
    f"{PLUS}:joining=100000",  # all predicted queries join
    f"{PLUS}:power=0",  # all that join weigh alike
)
DESCENTS = ("tim", "alpha-tim", PLUS)
WORLDS: dict[str, dict[str, Any]] = {
    "balanced": {},
    "Dirichlet 2": {"dirichlet": 2.0},
    "Dirichlet 1": {"dirichlet": 1.0},
    "1 distractor": {"distractors": 1},
    "5 distractors": {"distractors": 5},
    "1 query a class": {"query": 1},
    "3 a class, Dirichlet 1": {"query": 3, "dirichlet": 1.0},
    "20 ways": {"way": 20},
    "20 ways, Dirichlet 1": {"way": 20, "dirichlet": 1.0},
    "50 ways": {"way": 50},
    "200 ways": {"way": 200, "query": 10},
    "200 ways, Dirichlet 2": {"way": 200, "query": 10, "dirichlet": 2.0},
}
WORLDS_OF_DESCENTS = ("balanced", "Dirichlet 2", "Dirichlet 1")
SHOTS = (1, 5)


def main() -> None:
    """Measure, keep the figures and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=300)
    options = parser.parse_args()
    sets = {path.stem: measure(path, options.episodes) for path in options.features}
    few = options.episodes // 3  # a thousand steps each
    descents = {path.stem: measure_descents(path, few) for path in options.features}
    figures = {
        "episodes": options.episodes,
        "sets": sets,
        "episodes_of_descents": few,
        "descents": descents,
        "versions": versions(),
    }
    write_text(FIGURES, json.dumps(figures, indent=1) + "\n")
    write_text(ROOT / "docs" / "plus.md", plus_page(figures))


def measure(path: Path, episodes: int) -> dict[str, Any]:
    """Accuracy of every method and of plus without each part, by world and shot."""
    return _measured(path, [*COMPARED, *WITHOUT], WORLDS, episodes)


def measure_descents(path: Path, episodes: int) -> dict[str, Any]:
    """The same of the methods that descend a gradient, in the worlds that they are made for."""
    worlds = {world: WORLDS[world] for world in WORLDS_OF_DESCENTS}
    return _measured(path, list(DESCENTS), worlds, episodes)


def _measured(
    path: Path, methods: list[str], worlds: dict[str, dict[str, Any]], episodes: int
) -> dict[str, Any]:
    features, labels = load_features(path)
    measured = {}
    for world, shape in worlds.items():
        drawn = episodes * 4 // shape["way"] if "way" in shape else episodes
        try:
            results = evaluate(features, labels, methods, shot=SHOTS, episodes=drawn, **shape)
        except ValueError as error:
            print(f"{path.stem}, {world}: {error}")
            continue
        print(f"{path.stem}, {world}", flush=True)
        measured[world] = {str(k): _by_method([r for r in results if r.shot == k]) for k in SHOTS}
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


if __name__ == "__main__":
    main()
