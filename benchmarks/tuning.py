"""`python -m benchmarks.tuning VAL[,BASE]...`: choose options of compared methods.

Give feature files of validation classes only, each with that of the base classes if there is one.
Writes results/tuning.json and the tables of docs/tuning.md.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.documents import save_results
from protorect._utils.versions import versions
from protorect.evaluation.evaluate import evaluate
from protorect.methods import METHODS, Method
from protorect.report.table import Table

GRAPHS = ("tpn", "zhou")
ALPHAS = (0.5, 0.7, 0.8, 0.9, 0.99)
SIGMAS = (0.1, 0.15, 0.2, 0.3, 0.4)
PENALTIES = (0.1, 1.0, 10.0, 100.0)
CENTERS = {
    "nothing": "laplacian-shot:center=none",
    "the mean of the task": "laplacian-shot",
    "the mean of the base classes": "laplacian-shot:base_mean=given",
}
SETTINGS: dict[str, dict[str, Any]] = {"balanced": {}, "Dirichlet 2": {"dirichlet": 2.0}}
SHOTS = (1, 5)


def main() -> None:
    """Measure, and write the results and the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", metavar="VAL[,BASE]")
    parser.add_argument("--episodes", type=int, default=200)
    options = parser.parse_args()
    given = [tuple(map(Path, one.split(","))) for one in options.features]
    sets = {paths[0].stem: measure(*paths, episodes=options.episodes) for paths in given}
    save_results("tuning", {"episodes": options.episodes, "sets": sets, "versions": versions()})


def measure(path: Path, base: Path | None = None, *, episodes: int = 200) -> dict[str, list[float]]:
    """Accuracies by the name of the method, for every setting and shot."""
    methods: list[str | Method] = ["cspn", *(_spec(*one) for one in _propagations())]
    methods += [f"ridge:penalty={penalty}" for penalty in PENALTIES]
    methods += ["laplacian-shot:center=none", METHODS["laplacian-shot"]]
    measured: dict[str, list[float]] = {}
    for sampling in SETTINGS.values():
        shared: dict[str, Any] = {"shot": SHOTS, "episodes": episodes, "seed": 1, **sampling}
        results = evaluate(path, None, methods, **shared)
        if base is not None:
            results += evaluate(path, None, "laplacian-shot", base=base, **shared)
        for one in results:
            measured.setdefault(one.method, []).append(round(one.accuracy, 4))
    return measured


def tables(results: dict[str, Any]) -> dict[str, Table | list[Table]]:
    """The tables of docs/tuning.md."""
    sets = results["sets"]
    grids = [_grid_table(graph, sets, results["episodes"]) for graph in GRAPHS]
    return {
        "label propagation": grids,
        "label propagation by set": _by_set(sets),
        "laplacian-shot": _table(sets, "subtracted", CENTERS),
        "ridge": _table(sets, "penalty", {f"{p:g}": f"ridge:penalty={p}" for p in PENALTIES}),
    }


def best_propagation(sets: dict[str, dict[str, list[float]]]) -> tuple[str, float, float]:
    """Graph, alpha and sigma of the highest mean accuracy over all sets, settings and shots."""
    return max(_propagations(), key=lambda one: _mean(sets, _spec(*one)))


def _propagations() -> list[tuple[str, float, float]]:
    return list(product(GRAPHS, ALPHAS, SIGMAS))


def _spec(graph: str, alpha: float, sigma: float) -> str:
    return f"label-propagation:graph={graph},alpha={alpha},sigma={sigma}"


def _mean(sets: dict[str, dict[str, list[float]]], method: str) -> float:
    """Mean accuracy over the sets, rounded so that equal ones are equal."""
    return round(float(np.mean([measured[method] for measured in sets.values()])), 4)


def _grid(sets: dict[str, dict[str, list[float]]], graph: str) -> NDArray[np.float64]:
    return np.array([[_mean(sets, _spec(graph, a, s)) for s in SIGMAS] for a in ALPHAS])


def _grid_table(graph: str, sets: dict[str, dict[str, list[float]]], episodes: int) -> Table:
    grid = _grid(sets, graph)
    rows = [
        [f"{alpha:g}", *(f"**{v:.2f}**" if v == grid.max() else f"{v:.2f}" for v in row)]
        for alpha, row in zip(ALPHAS, grid, strict=True)
    ]
    caption = f"graph={graph}: mean accuracy in % over all sets, settings and shots, {episodes} "
    caption += "episodes each; rows are alpha, columns sigma."
    return Table(caption, ["alpha", *(f"{sigma:g}" for sigma in SIGMAS)], rows)


def _by_set(sets: dict[str, dict[str, list[float]]]) -> Table:
    chosen, before = best_propagation(sets), ("zhou", 0.99, 0.1)
    rows = []
    for name, measured in sets.items():
        own = max(_propagations(), key=lambda one: np.mean(measured[_spec(*one)]))
        values = [measured[m] for m in ("cspn", _spec(*before), _spec(*chosen), _spec(*own))]
        graph, alpha, sigma = own
        cells = [f"{np.mean(value):.2f}" for value in values]
        rows.append([name, *cells, f"{graph}, {alpha:g}, {sigma:g}"])
    header = ["set", "`cspn`", _text(before), f"chosen: {_text(chosen)}", "best of the set", "with"]
    return Table("Mean accuracy in % over both settings and shots.", header, rows)


def _text(one: tuple[str, float, float]) -> str:
    return f"{one[0]}, {one[1]:g}, {one[2]:g}"


def _table(sets: dict[str, dict[str, list[float]]], label: str, methods: dict[str, str]) -> Table:
    """One row per value of an option, one column per set and setting."""
    header = [label, *(f"{name}, {setting}" for name, setting in product(sets, SETTINGS))]
    rows = []
    for value, method in methods.items():
        cells = []
        for measured in sets.values():
            if method in measured:
                by_setting = np.reshape(measured[method], (len(SETTINGS), len(SHOTS)))
                cells += [f"{accuracy:.1f}" for accuracy in by_setting.mean(axis=1)]
            else:
                cells += [""] * len(SETTINGS)
        rows.append([value, *cells])
    return Table("Accuracy in %, mean of one and five shots.", header, rows)


if __name__ == "__main__":
    main()
