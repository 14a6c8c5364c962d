"""A comparison of methods: mean ranks with the critical difference, accuracy against speed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protorect.evaluation.compare import Comparison
from protorect.report.style import BLUE, INK, VERMILLION, new_figure, to_svg


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
        axes.set_ylim(len(order) - 0.4, -1.4)
        axes.set_xlim(left=0.8)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("mean rank")
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
        axes.set_xlim(left, right * (right / left) ** 0.35)  # space for the names
        axes.set_xlabel("episodes per second")
        axes.set_ylabel("mean accuracy in %")
        return to_svg(figure)


def _label_heights(y: NDArray[np.float64], spacing: float, x: NDArray[np.float64]) -> list[float]:
    """Heights of labels, from the lowest dot up, each above the labels of dots near in x."""
    heights: dict[int, float] = {}
    for i in map(int, np.argsort(y, kind="stable")):
        near = [heights[j] for j in heights if abs(x[i] - x[j]) < 0.8]
        heights[i] = max([float(y[i]), *(height + spacing for height in near)])
    return [heights[i] for i in range(len(y))]
