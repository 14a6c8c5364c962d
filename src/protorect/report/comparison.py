"""A comparison of methods as tables, JSON and a page."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from rich.table import Table as RichTable

from protorect.evaluation.compare import Comparison
from protorect.methods import METHODS
from protorect.report.page import Block, Figure, Page, Section, Table, Terms
from protorect.report.rank_plots import accuracy_against_speed, rank_diagram
from protorect.report.tables import accuracy_text, result_record


def summary_grid(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Header and rows, the best mean rank first: rank, worst gap to the best, speed."""
    header = ["method", "mean rank", "worst gap to the best", "episodes/s"]
    ranks, gaps = comparison.ranks, comparison.behind_best
    speeds = comparison.episodes_per_second
    rows = [
        [comparison.methods[i], f"{ranks[i]:.2f}", f"{gaps[i]:.2f}", f"{speeds[i]:,.0f}"]
        for i in np.argsort(ranks, kind="stable")
    ]
    return header, rows


def accuracy_grid(comparison: Comparison, features: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one feature set: a row a method, a column a world and shot."""
    columns = [column for column in comparison.columns if column.features == features]
    header = ["method", *(f"{column.world}, {column.shot}-shot" for column in columns)]
    rows = [
        [name, *(accuracy_text(column.results[i]) for column in columns)]
        for i, name in enumerate(comparison.methods)
    ]
    return header, rows


def comparison_tables(comparison: Comparison) -> list[RichTable]:
    """For the terminal: one table a feature set, and the summary."""
    tables = [
        _rich(f"{name}: accuracy in %", *accuracy_grid(comparison, name))
        for name in feature_names(comparison)
    ]
    title = f"over {len(comparison.columns)} columns. {_critical(comparison)}"
    return [*tables, _rich(title, *summary_grid(comparison))]


def comparison_json(comparison: Comparison, settings: dict[str, Any]) -> str:
    """All that was measured, and the ranks."""
    document = {
        "columns": [
            {
                "features": column.features,
                "world": column.world,
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
        "left_out": list(comparison.left_out),
        "settings": settings,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def comparison_page(comparison: Comparison, settings: dict[str, Any]) -> Page:
    """One page: ranks, accuracy against speed, every table, and what was run."""
    ranks = comparison.ranks
    first = comparison.methods[int(np.argmin(ranks))]
    best = sum(column.best.method == first for column in comparison.columns)
    return Page(
        title="Few-shot methods compared",
        lead=f"{len(comparison.methods)} methods on the same episodes. `{first}` has the best mean "
        f"rank, {ranks.min():.2f} over {len(comparison.columns)} columns, and is the most accurate "
        f"in {best} of them.",
        sections=[
            _rank_section(comparison),
            *(_feature_section(comparison, name) for name in feature_names(comparison)),
            Section("How this page was made", [Terms(_told(settings))]),
        ],
    )


def feature_names(comparison: Comparison) -> list[str]:
    """Of the feature sets, in their order."""
    return list(dict.fromkeys(column.features for column in comparison.columns))


def _rank_section(comparison: Comparison) -> Section:
    blocks: list[Block] = [
        Figure(
            rank_diagram(comparison),
            alt="Mean rank of every method: the numbers of the table below.",
            caption="Mean rank over all columns, the best at the top. The bar is the critical "
            "difference: methods within it of the best cannot be told from it by ranks alone.",
        ),
        Table(
            f"Over {len(comparison.columns)} columns (feature set, world, shot). "
            f"{_critical(comparison)}. Speed on this machine, all methods one after "
            "the other.",
            *summary_grid(comparison),
        ),
        Figure(
            accuracy_against_speed(comparison),
            alt="Mean accuracy of every method against its episodes per second.",
            caption="Mean accuracy over all columns against speed. Up and to the right is better.",
        ),
    ]
    known = {name: METHODS[name].summary for name in comparison.methods if name in METHODS}
    if known:
        blocks.append(Terms({f"`{name}`": summary for name, summary in known.items()}))
    return Section("Which method is best", blocks)


def _feature_section(comparison: Comparison, name: str) -> Section:
    blocks: list[Block] = [
        Table("Accuracy in % with 95 % intervals.", *accuracy_grid(comparison, name))
    ]
    blocks += [sentence for sentence in comparison.left_out if sentence.startswith(f"{name},")]
    return Section(name, blocks)


def _critical(comparison: Comparison) -> str:
    return f"Mean ranks differ from {comparison.critical_difference:.2f} on (Nemenyi, 5 %)"


def _told(settings: dict[str, Any]) -> dict[str, str]:
    return {name: _written(value) for name, value in settings.items()}


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {held}" for name, held in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def _rich(title: str, header: list[str], rows: list[list[str]]) -> RichTable:
    table = RichTable(title=title, title_justify="left")
    table.add_column(header[0], overflow="fold")
    for name in header[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    return table
