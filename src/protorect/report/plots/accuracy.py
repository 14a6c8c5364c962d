"""Accuracies as curves, bars and dots, and the confusion matrix."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter
from numpy.typing import ArrayLike, NDArray

from protorect.report.style import (
    BLUE,
    INK,
    add_legend,
    new_figure,
    same_length,
    series_styles,
    to_svg,
)

HATCHES = ("", "///", "\\\\\\", "--", "xx")  # bars also differ without color
# Field of a curve, label and dashes.
THEORIES = (("expected", "theory, one η", (4, 2)), ("expected_own", "theory, η per shot", (1, 1.5)))
MOST_WITH_COUNTS = 30  # classes of a confusion matrix; with more, counts would be too small to read
_SHADES = LinearSegmentedColormap.from_list("shades", [(0, 0.45, 0.7, 0.0), BLUE])


@dataclass(frozen=True)
class Curve:
    """Values y at x, all (n,), with half-widths of 95 % intervals and, if known, a theory's y.

    `expected` is the theory with one coefficient for all curves, `expected_own` with its own.
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    ci95: ArrayLike
    expected: ArrayLike | None = None
    expected_own: ArrayLike | None = None

    def arrays(self) -> list[NDArray[np.float64]]:
        """x, y, ci95 and, as far as known, both theories; an error unless they have one length."""
        expected = [one for one in (self.expected, self.expected_own) if one is not None]
        return same_length(self.label, self.x, self.y, self.ci95, *expected)


def accuracy_against_z(curves: Sequence[Curve], title: str, limits: tuple[float, float]) -> str:
    """Plot accuracy against Z with 95 % bands, the theory's dashed; `limits` of the accuracy axis.

    Plots to be compared have the same limits, those of `accuracy_limits` for all their curves.
    """
    with new_figure(5.6, 4.2) as (figure, axes):
        ends = []
        for curve, (color, marker) in zip(curves, series_styles(len(curves)), strict=True):
            z, accuracy = _plot_curve(axes, curve, color, marker)
            ends.append((z[-1], accuracy[-1], curve.label, color))
        axes.set(xlabel="Z, queries that may join each class", ylabel="accuracy in %", ylim=limits)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _label_ends(axes, ends)
        handles: list[Line2D | Patch] = [
            Line2D([], [], color=INK, marker="o", label="measured"),
            Patch(color=INK, alpha=0.22, label="95 % interval"),
        ]
        for name, label, dashes in THEORIES:
            if any(getattr(curve, name) is not None for curve in curves):
                handles.append(Line2D([], [], color=INK, dashes=dashes, lw=1.8, label=label))
        add_legend(axes, handles, title, columns=2 if len(handles) > 3 else None)
        return to_svg(figure)


def accuracy_limits(curves: Sequence[Curve]) -> tuple[float, float]:
    """Limits of an accuracy axis that contain all of these curves, in steps of 5 %.

    What a theory expects above 100 % is left out, so that the measured curves stay readable.
    """
    values = []
    for curve in curves:
        _, accuracy, ci95, *expected = curve.arrays()
        values += [accuracy - np.nan_to_num(ci95), accuracy + np.nan_to_num(ci95), *expected]
    joined = np.minimum(np.concatenate(values), 100)
    low, high = min(95, math.floor(joined.min() / 5) * 5), math.ceil(joined.max() / 5) * 5
    return float(low), float(high if high > low else low + 5)


def curves_on_log_axis(
    curves: Sequence[Curve],
    axis_labels: tuple[str, str],
    level: tuple[str, float] | None,
    title: str,
) -> str:
    """Plot curves over a logarithmic axis, and if given a dashed line: its label and height."""
    with new_figure(5.6, 4.0) as (figure, axes):
        handles = []
        for curve, (color, marker) in zip(curves, series_styles(len(curves)), strict=True):
            _plot_curve(axes, curve, color, marker)
            handles.append(Line2D([], [], color=color, marker=marker, label=curve.label))
        if level is not None:
            axes.axhline(level[1], color=INK, lw=1.3, dashes=(6, 2))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks([1, 2, 5, 10, 20, 50])
        axes.set(xlabel=axis_labels[0], ylabel=axis_labels[1])
        if level is not None:
            _label_ends(axes, [(axes.get_xlim()[1], level[1], level[0], INK)])
        add_legend(axes, handles, title)
        return to_svg(figure)


def grouped_bars(
    groups: Sequence[str], bars: Mapping[str, tuple[ArrayLike, ArrayLike]], unit: str, title: str
) -> str:
    """Plot bars side by side; the axis starts where differences are visible, not at 0.

    `bars` has, by label, the heights and the half-widths of 95 % intervals, one per group.
    """
    width = 0.8 / max(len(bars), 1)
    with new_figure(5.6, 3.8) as (figure, axes):
        lowest, handles = np.inf, []
        styles = zip(bars, series_styles(len(bars)), HATCHES, strict=False)
        for number, (label, (color, _), hatch) in enumerate(styles):
            places, heights, ci95 = same_length(label, np.arange(len(groups)), *bars[label])
            places += (number - (len(bars) - 1) / 2) * width
            style: dict[str, Any] = {"facecolor": color, "hatch": hatch}
            style |= {"edgecolor": INK, "lw": 0.6}
            axes.bar(places, heights, 0.92 * width, **style)
            axes.errorbar(places, heights, ci95, ls="none", color=INK, lw=1.2, capsize=3)
            lowest = min(lowest, float((heights - np.nan_to_num(ci95)).min()))
            handles.append(Patch(**style, label=label))
        axes.set_xticks(range(len(groups)), groups)
        axes.grid(visible=False, axis="x")
        axes.set(ylabel=unit, ylim=(max(0.0, np.floor(lowest / 5) * 5 - 5), 100))
        add_legend(axes, handles, title)
        return to_svg(figure)


def confusion_plot(counts: NDArray[np.integer[Any]], names: Sequence[str]) -> str:
    """Plot a confusion matrix: counts (ways, ways), row: true class, column: predicted class."""
    ways = len(names)
    side = min(9.0, 2.4 + 0.3 * ways)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    with new_figure(side + 1.2, side) as (figure, axes):
        axes.pcolormesh(shares, cmap=_SHADES, vmin=0, vmax=1, edgecolors=INK, linewidth=0.05)
        middle = np.arange(ways) + 0.5
        font_size = max(5.0, min(10.0, 220 / ways))
        axes.set_xticks(middle, names, rotation=90, fontsize=font_size)
        axes.set_yticks(middle, names, fontsize=font_size)
        axes.set(xlim=(0, ways), ylim=(ways, 0), xlabel="predicted class", ylabel="true class")
        axes.grid(visible=False)
        if ways <= MOST_WITH_COUNTS:
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": font_size}
            for row, column in zip(*counts.nonzero(), strict=True):
                color = "white" if shares[row, column] > 0.5 else INK
                count = str(int(counts[row, column]))
                axes.text(column + 0.5, row + 0.55, count, color=color, **style)
        return to_svg(figure)


def _plot_curve(axes: Axes, curve: Curve, color: str, marker: str) -> list[NDArray[np.float64]]:
    """Plot a curve, its band and its theory; return x and y."""
    x, y, ci95, *expected = curve.arrays()
    axes.fill_between(x, y - ci95, y + ci95, color=color, alpha=0.22, lw=0)
    axes.plot(x, y, color=color, marker=marker)
    for line, (_, _, dashes) in zip(expected, THEORIES, strict=False):
        axes.plot(x, line, color=color, dashes=dashes, lw=1.8)
    return [x, y]


def _label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Label the right end (x, y, label, color) of every line, moved apart where two overlap."""
    low, high = axes.get_ylim()
    spacing, height = 0.075 * (high - low), -math.inf
    for x, y, label, color in sorted(ends, key=lambda end: end[1]):
        height = max(y, height + spacing)
        line = {"arrowstyle": "-", "color": color, "lw": 1, "shrinkA": 1, "shrinkB": 4}
        style: dict[str, Any] = {"va": "center", "annotation_clip": False, "arrowprops": line}
        right = axes.get_yaxis_transform()  # x relative to the axes, y in data
        axes.annotate(label, (x, y), (1.02, height), textcoords=right, **style)
