"""A comparison of methods as tables, JSON and a page."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from protorect.evaluation.compare import Comparison
from protorect.methods import METHODS
from protorect.report.page import Element, Figure, Page, Section, Terms
from protorect.report.plots.comparison import accuracy_against_speed, rank_diagram
from protorect.report.results import accuracy_text, result_record
from protorect.report.table import Table


def summary_table(comparison: Comparison) -> Table:
    """Rank, largest gap to the best method, and speed; the best mean rank first."""
    ranks, gaps = comparison.ranks, comparison.behind_best
    speeds = comparison.episodes_per_second
    return Table(
        f"Over {len(comparison.columns)} columns (feature set, setting, shot). Mean ranks that "
        f"differ by less than {comparison.critical_difference:.2f} are not significantly different "
        "(Nemenyi, 5 %). Speed on this machine, one method after the other.",
        ["method", "mean rank", "worst gap to the best", "episodes/s"],
        [
            [comparison.methods[i], f"{ranks[i]:.2f}", f"{gaps[i]:.2f}", f"{speeds[i]:,.0f}"]
            for i in np.argsort(ranks, kind="stable")
        ],
    )


def accuracy_table(comparison: Comparison, features: str) -> Table:
    """Accuracies on one feature set: one row per method, one column per setting and shot."""
    columns = [column for column in comparison.columns if column.features == features]
    return Table(
        f"{features}: accuracy in % with 95 % intervals.",
        ["method", *(f"{column.setting}, {column.shot}-shot" for column in columns)],
        [
            [name, *(accuracy_text(column.results[i]) for column in columns)]
            for i, name in enumerate(comparison.methods)
        ],
    )


def comparison_tables(comparison: Comparison) -> list[Table]:
    """One table per feature set, and the summary."""
    tables = [accuracy_table(comparison, name) for name in _feature_sets(comparison)]
    return [*tables, summary_table(comparison)]


def comparison_json(comparison: Comparison, settings: dict[str, Any]) -> str:
    """All results, and the ranks."""
    document = {
        "columns": [
            {
                "features": column.features,
                "world": column.setting,  # the key that files have had from the beginning
                "shot": column.shot,
                "results": [result_record(result) for result in column.results],
            }
            for column in comparison.columns
        ],
        "summary": [
            {
                "method": name,
                "rank": float(comparison.ranks[i]),
                "behind_best": float(comparison.behind_best[i]),
                "episodes_per_second": float(comparison.episodes_per_second[i]),
            }
            for i, name in enumerate(comparison.methods)
        ],
        "critical_difference": comparison.critical_difference,
        "left_out": [str(skipped) for skipped in comparison.skipped],
        "settings": settings,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def comparison_page(comparison: Comparison, settings: dict[str, Any]) -> Page:
    """One page: ranks, accuracy against speed, every table, and the settings."""
    ranks = comparison.ranks
    first = comparison.methods[int(np.argmin(ranks))]
    best = sum(column.best.method == first for column in comparison.columns)
    details = {name: _text(value) for name, value in settings.items()}
    return Page(
        title="Few-shot methods compared",
        lead=f"{len(comparison.methods)} methods on the same episodes. `{first}` has the best mean "
        f"rank, {ranks.min():.2f} over {len(comparison.columns)} columns, and is the most accurate "
        f"in {best} of them.",
        sections=[
            _rank_section(comparison),
            *(_feature_section(comparison, name) for name in _feature_sets(comparison)),
            Section("How this page was made", [Terms(details)]),
        ],
    )


def _feature_sets(comparison: Comparison) -> list[str]:
    """Names of the feature sets, in their order."""
    return list(dict.fromkeys(column.features for column in comparison.columns))


def _rank_section(comparison: Comparison) -> Section:
    elements: list[Element] = [
        Figure(
            rank_diagram(comparison),
            alt="Mean rank of every method: the numbers of the table below.",
            caption="Mean rank over all columns, the best at the top. The bar is the critical "
            "difference: ranks alone cannot distinguish the methods within it from the best.",
        ),
        summary_table(comparison),
        Figure(
            accuracy_against_speed(comparison),
            alt="Mean accuracy of every method against its episodes per second.",
            caption="Mean accuracy over all columns against speed. Up and to the right is better.",
        ),
    ]
    known = [METHODS[name] for name in comparison.methods if name in METHODS]
    if known:
        elements.append(Terms({f"`{method.name}`": method.summary for method in known}))
    return Section("Which method is best", elements)


def _feature_section(comparison: Comparison, name: str) -> Section:
    skipped = [str(one) for one in comparison.skipped if one.features == name]
    return Section(name, [accuracy_table(comparison, name), *skipped])


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
