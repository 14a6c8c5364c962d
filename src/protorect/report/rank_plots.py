"""Plots of a comparison: mean ranks with the critical difference, accuracy against speed."""

from __future__ import annotations

import numpy as np

from protorect.evaluation.compare import Comparison
from protorect.report.drawing import BLUE, INK, VERMILLION, drawing, svg_text


def rank_diagram(comparison: Comparison) -> str:
    """Mean rank of every method, a row each, and the critical difference from the best."""
    ranks = comparison.ranks
    order = np.argsort(ranks, kind="stable")
    best, reach = ranks.min(), comparison.critical_difference
    with drawing(5.6, 1.0 + 0.3 * len(order)) as (figure, axes):
        rows = range(len(order))
        near = ranks[order] <= best + reach
        axes.hlines(rows, 1, ranks[order], color=INK, alpha=0.25, linewidth=1)
        for told, colour, marker in ((near, BLUE, "o"), (~near, VERMILLION, "s")):
            axes.plot(ranks[order][told], np.flatnonzero(told), marker, color=colour, markersize=7)
        axes.plot([best, best + reach], [-0.8, -0.8], color=INK, linewidth=3)
        axes.text(best + reach, -0.8, f"  critical difference {reach:.2f}", va="center")
        axes.set_yticks(rows, [comparison.methods[i] for i in order])
        axes.set_ylim(len(order) - 0.4, -1.4)
        axes.set_xlim(left=0.8)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("mean rank")
        return svg_text(figure)


def accuracy_against_speed(comparison: Comparison) -> str:
    """Mean accuracy over the columns against episodes per second, a labelled dot a method."""
    accuracy = comparison.accuracies.mean(axis=0)
    speed = comparison.episodes_per_second
    with drawing(6.4, 4.6) as (figure, axes):
        axes.plot(speed, accuracy, "o", color=BLUE, markersize=6)
        axes.set_xscale("log")
        low, high = axes.get_ylim()
        heights = _apart(accuracy, (high - low) / 24, np.log10(speed))
        for name, x, y, height in zip(comparison.methods, speed, accuracy, heights, strict=True):
            axes.annotate(
                name,
                (x, y),
                (x * 1.12, height),
                va="center",
                fontsize=9,
                arrowprops={"arrowstyle": "-", "color": INK, "alpha": 0.3, "shrinkB": 3},
            )
        left, right = axes.get_xlim()
        axes.set_xlim(left, right * (right / left) ** 0.35)  # room for the names
        axes.set_xlabel("episodes per second")
        axes.set_ylabel("mean accuracy in %")
        return svg_text(figure)


def _apart(
    heights: np.ndarray[tuple[int], np.dtype[np.float64]],
    least: float,
    places: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> list[float]:
    """Heights for labels, from the lowest up, each so far above those that stand beside it."""
    told: dict[int, float] = {}
    for i in np.argsort(heights, kind="stable"):
        beside = [told[j] for j in told if abs(places[i] - places[j]) < 0.8]
        told[int(i)] = max([float(heights[i]), *(height + least for height in beside)])
    return [told[i] for i in range(len(heights))]
