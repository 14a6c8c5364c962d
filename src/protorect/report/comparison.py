"""A comparison of methods as tables, JSON, plots and a page."""

import json
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray

from protorect.evaluation.compare import Comparison
from protorect.methods import METHODS, Method
from protorect.report.page import Element, Figure, Page, Section
from protorect.report.results import accuracy_text, result_record
from protorect.report.style import BLUE, INK, VERMILLION, new_figure, to_svg
from protorect.report.table import Table

LARGEST_GAP = 20.0  # points behind the best from which a cell of a heat map is darkest
HEAT = LinearSegmentedColormap.from_list("behind", ["#ffffff", VERMILLION, "#5a1f00"])


def summary_table(comparison: Comparison) -> Table:
    """Rank, largest gap to the best method, and speed; the best mean rank first."""
    ranks, gaps = comparison.ranks, comparison.behind_best
    speeds = comparison.episodes_per_second
    return Table(
        f"Over {len(comparison.columns)} columns (feature set, setting, shot) of "
        f"{len(comparison.sources)} sets of pictures. Columns of the same pictures are averaged "
        "first, because they are not independent; equal accuracies share a rank. "
        f"{_significance(comparison)} Speed on this machine, one method after the other.",
        ["method", "mean rank", "largest gap to the best, points", "episodes/s"],
        [
            [comparison.methods[i], f"{ranks[i]:.2f}", f"{gaps[i]:.2f}", f"{speeds[i]:,.0f}"]
            for i in np.argsort(ranks, kind="stable")
        ],
    )


def _significance(comparison: Comparison) -> str:
    """What differences of mean ranks say."""
    difference = comparison.critical_difference
    if difference > len(comparison.methods) - 1:
        return "These are too few sets of pictures to tell two methods apart by their mean ranks."
    return (
        f"Mean ranks that differ by less than {difference:.2f} are not significantly different "
        "(Nemenyi, 5 %)."
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
    """All results and the summary, as JSON."""
    document = {
        "columns": [
            {
                "features": column.features,
                "pictures": column.source,
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
        "left_out": list(comparison.skipped.values()),
        "settings": settings,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def comparison_page(comparison: Comparison, settings: dict[str, Any]) -> Page:
    """One page: ranks, accuracy against speed, every table, and the settings."""
    ranks = comparison.ranks
    first = int(np.argmin(ranks))
    accuracies = comparison.accuracies
    best = int((accuracies[:, first] == accuracies.max(axis=1)).sum())
    details = {name: _text(value) for name, value in settings.items()}
    return Page(
        title="Few-shot methods compared",
        lead=f"{len(comparison.methods)} methods on the same episodes. "
        f"`{comparison.methods[first]}` has the best mean rank, {ranks.min():.2f} over "
        f"{len(comparison.columns)} columns, and is the most accurate in {best} of them.",
        sections=[
            _rank_section(comparison),
            _glance_section(comparison),
            _tuning_section(comparison),
            *(_feature_section(comparison, name) for name in _feature_sets(comparison)),
            Section("How this page was made", [details]),
        ],
    )


def rank_diagram(comparison: Comparison) -> str:
    """Plot the mean rank of every method, one row each, and the critical difference."""
    ranks = comparison.ranks
    order = np.argsort(ranks, kind="stable")
    best, difference = ranks.min(), comparison.critical_difference
    with new_figure(5.6, 1.0 + 0.3 * len(order)) as (figure, axes):
        rows = range(len(order))
        near = ranks[order] <= best + difference
        axes.hlines(rows, 1, ranks[order], color=INK, alpha=0.25, linewidth=1)
        for group, color, marker in ((near, BLUE, "o"), (~near, VERMILLION, "s")):
            axes.plot(ranks[order][group], np.flatnonzero(group), marker, color=color, markersize=7)
        axes.plot([best, best + difference], [-0.8, -0.8], color=INK, linewidth=3)
        axes.text(best + difference, -0.8, f"  critical difference {difference:.2f}", va="center")
        axes.set_yticks(rows, [comparison.methods[i] for i in order])
        axes.set(xlim=(0.8, None), ylim=(len(order) - 0.4, -1.4), xlabel="mean rank")
        axes.grid(visible=False, axis="y")
        return to_svg(figure)


def heat_map(comparison: Comparison, setting: str) -> str:
    """Plot the accuracies in one setting: one row per method, one column per set and shot."""
    chosen = [i for i, column in enumerate(comparison.columns) if column.setting == setting]
    order = np.argsort(comparison.ranks, kind="stable")
    accuracies = comparison.accuracies[chosen][:, order].T  # (methods, columns)
    gaps = accuracies.max(axis=0) - accuracies
    columns = [comparison.columns[i] for i in chosen]
    rows, n = accuracies.shape
    with new_figure(1.9 + 0.62 * n, 1.3 + 0.27 * rows) as (figure, axes):
        darkness = np.minimum(gaps / LARGEST_GAP, 1) ** 0.5  # small gaps are the interesting ones
        axes.pcolormesh(darkness, cmap=HEAT, vmin=0, vmax=1, edgecolors="none")
        for (i, j), value in np.ndenumerate(accuracies):
            color = "#ffffff" if darkness[i, j] > 0.6 else "#000000"
            weight = "bold" if gaps[i, j] == 0 else "normal"
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
            axes.text(j + 0.5, i + 0.5, f"{value:.1f}", color=color, weight=weight, **style)
        axes.set_yticks(np.arange(rows) + 0.5, [comparison.methods[i] for i in order])
        labels = [f"{column.features}, {column.shot}-shot" for column in columns]
        axes.set_xticks(np.arange(n) + 0.5, labels, rotation=40, ha="left", rotation_mode="anchor")
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.invert_yaxis()
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
        return to_svg(figure)


def accuracy_against_speed(comparison: Comparison) -> str:
    """Plot mean accuracy over the columns against episodes per second, one dot per method."""
    accuracy = comparison.accuracies.mean(axis=0)
    speed = comparison.episodes_per_second
    with new_figure(6.4, 4.6) as (figure, axes):
        axes.plot(speed, accuracy, "o", color=BLUE, markersize=6)
        axes.set_xscale("log")
        low, high = axes.get_ylim()
        heights = _label_heights(accuracy, (high - low) / 24, np.log10(speed))
        line = {"arrowstyle": "-", "color": INK, "alpha": 0.3, "shrinkB": 3}
        style: dict[str, Any] = {"va": "center", "fontsize": 9, "arrowprops": line}
        for name, x, y, height in zip(comparison.methods, speed, accuracy, heights, strict=True):
            axes.annotate(name, (x, y), (x * 1.12, height), **style)
        left, right = axes.get_xlim()
        axes.set_xlim(left, right * (right / left) ** 0.35)  # space for the names
        axes.set(xlabel="episodes per second", ylabel="mean accuracy in %")
        return to_svg(figure)


def _label_heights(y: NDArray[np.float64], spacing: float, x: NDArray[np.float64]) -> list[float]:
    """Heights of labels, from the lowest dot up, each above the labels of dots near in x."""
    heights: dict[int, float] = {}
    for i in map(int, np.argsort(y, kind="stable")):
        near = [heights[j] for j in heights if abs(x[i] - x[j]) < 0.8]
        heights[i] = max([float(y[i]), *(height + spacing for height in near)])
    return [heights[i] for i in range(len(y))]


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
    if known := _known(comparison):
        elements.append({f"`{method.name}`": method.summary for method in known})
    return Section("Which method is best", elements)


def _known(comparison: Comparison) -> list[Method]:
    return [METHODS[name] for name in comparison.methods if name in METHODS]


def _glance_section(comparison: Comparison) -> Section:
    settings = dict.fromkeys(column.setting for column in comparison.columns)
    caption = "{}: accuracy in %, the best mean rank at the top. The darker a cell, the further "
    caption += "behind the best method of its column; bold is the best."
    return Section(
        "At a glance",
        [
            Figure(
                heat_map(comparison, setting),
                alt=f"Accuracy of every method, {setting}: the numbers of the tables below.",
                caption=caption.format(setting[0].upper() + setting[1:]),
            )
            for setting in settings
        ],
    )


def _tuning_section(comparison: Comparison) -> Section:
    groups: dict[str, list[str]] = {}
    for method in _known(comparison):
        groups.setdefault(method.tuned_on, []).append(f"`{method.name}`")
    caption = "On what the defaults of the options were chosen."
    table = Table(caption, ["chosen on", "methods"], [[k, ", ".join(v)] for k, v in groups.items()])
    shared = "All methods have their defaults, the same support and the same queries; none is "
    shared += "given the mean of the base classes. Test classes were used for no choice."
    return Section("What was tuned on what", [shared, table])


def _feature_section(comparison: Comparison, name: str) -> Section:
    skipped = [comparison.skipped[name]] if name in comparison.skipped else []
    return Section(name, [accuracy_table(comparison, name), *skipped])


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
