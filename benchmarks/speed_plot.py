"""Accuracy against speed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, ScalarFormatter

from protorect.report.style import BLUE, INK, STYLE, VERMILLION, to_svg


@dataclass(frozen=True)
class Point:
    """The accuracy of something in percent, with the half-width of its interval, and its rate."""

    label: str
    rate: float
    accuracy: float
    ci95: float
    filled: bool = True
    marked: bool = False  # in another color, the default for instance


def accuracy_against_speed(panels: Mapping[str, Sequence[Point]]) -> str:
    """Plot panels of points by title, two in a row; a line joins those that none surpasses."""
    with style.context(STYLE, after_reset=True):
        rows = -(-len(panels) // 2)
        figure = Figure(figsize=(8.4, 3.4 * rows), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, 2)).ravel()
        for panel, (title, points) in zip(axes, panels.items(), strict=True):
            _plot(panel, title, points)
        handles = [
            Line2D([], [], color=BLUE, marker="o", linestyle="", label="int8"),
            Line2D([], [], color=BLUE, marker="o", mfc="none", linestyle="", label="float32"),
            Line2D([], [], color=VERMILLION, marker="o", linestyle="", label="the default"),
            Line2D([], [], color=INK, linewidth=0.8, alpha=0.5, label="none is faster and better"),
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=len(handles))
        return to_svg(figure)


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that none surpasses in both accuracy and rate, the fastest first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda one: (-one.rate, -one.accuracy)):
        if not best or point.accuracy > best[-1].accuracy:
            best.append(point)
    return best


def _plot(axes: Axes, title: str, points: Sequence[Point]) -> None:
    line = frontier(points)
    rates, accuracies = [one.rate for one in line], [one.accuracy for one in line]
    axes.plot(rates, accuracies, color=INK, linewidth=0.8, alpha=0.5, zorder=0)
    for one in points:
        color = VERMILLION if one.marked else BLUE
        axes.errorbar(
            one.rate,
            one.accuracy,
            one.ci95,
            color=color,
            marker="o",
            mfc=color if one.filled else "none",
            capsize=2,
            linestyle="",
        )
        if one.filled:
            place = {"xytext": (-6, -10), "ha": "right"} if " " in one.label else {"xytext": (6, 4)}
            at = (one.rate, one.accuracy)
            axes.annotate(one.label, at, textcoords="offset points", size=8, **place)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="decoded pictures/s on one core", ylabel="accuracy in %", title=title)
    axes.margins(x=0.25)
