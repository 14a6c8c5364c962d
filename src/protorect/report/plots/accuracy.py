"""Accuracies with 95 % intervals: along Z or another parameter, as bars, as dots; epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter
from numpy.typing import ArrayLike, NDArray

from protorect.errors import DataError
from protorect.evaluation.evaluate import Result
from protorect.report.style import (
    INK,
    label_ends,
    new_figure,
    same_length,
    series_styles,
    title_and_legend,
    to_svg,
)

HATCHES = ("", "///", "\\\\\\", "--", "xx")  # bars also differ without color
LEVEL_DASHES = ((6, 2), (1, 1.5))


@dataclass(frozen=True)
class Curve:
    """Values y at x, all (n,), with half-widths of 95 % intervals and, if known, a theory's y."""

    label: str
    x: ArrayLike
    y: ArrayLike
    ci95: ArrayLike
    expected: ArrayLike | None = None

    def arrays(self) -> list[NDArray[np.float64]]:
        """x, y, ci95 and, if there is one, expected; an error unless they have one length."""
        expected = [] if self.expected is None else [self.expected]
        return same_length(self.label, self.x, self.y, self.ci95, *expected)


def accuracy_against_z(
    curves: Sequence[Curve], title: str = "", limits: tuple[float, float] | None = None
) -> str:
    """Plot measured accuracy against Z as solid lines with 95 % bands, the theory's dashed.

    `limits` are those of the accuracy axis, for plots to be compared; see `accuracy_limits`.
    """
    with new_figure(5.6, 4.2) as (figure, axes):
        ends = []
        for curve, (color, marker) in zip(curves, series_styles(len(curves)), strict=True):
            z, accuracy, ci95, *expected = curve.arrays()
            _line_with_band(axes, z, accuracy, ci95, color=color, marker=marker)
            for line in expected:
                axes.plot(z, line, color=color, dashes=(4, 2), lw=1.8)
            ends.append((float(z[-1]), float(accuracy[-1]), curve.label, color))
        axes.set(xlabel="Z, queries that may join each class", ylabel="accuracy in %")
        axes.set_ylim(limits or accuracy_limits(curves))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        label_ends(axes, ends)
        handles: list[Line2D | Patch] = [
            Line2D([], [], color=INK, marker="o", label="measured"),
            Patch(color=INK, alpha=0.22, label="95 % interval"),
        ]
        if any(curve.expected is not None for curve in curves):
            handles.append(Line2D([], [], color=INK, dashes=(4, 2), lw=1.8, label="theory"))
        title_and_legend(axes, title, handles)
        return to_svg(figure)


def accuracy_limits(curves: Sequence[Curve]) -> tuple[float, float]:
    """Limits of an accuracy axis that contain all of these curves, in steps of 5 %."""
    if not curves:
        raise DataError("there is no curve to plot.")
    values = []
    for curve in curves:
        _, accuracy, ci95, *expected = curve.arrays()
        values += [accuracy - np.nan_to_num(ci95), accuracy + np.nan_to_num(ci95), *expected]
    joined = np.concatenate(values)
    low, high = math.floor(joined.min() / 5) * 5, math.ceil(joined.max() / 5) * 5
    return float(low), float(high if high > low else low + 5)


def curves_on_log_axis(
    curves: Sequence[Curve],
    axis_labels: tuple[str, str],
    levels: Sequence[tuple[str, float]] = (),
    title: str = "",
) -> str:
    """Plot curves with 95 % bands over a logarithmic axis.

    `levels` are up to two labels and heights of horizontal lines, dashed, then dotted.
    """
    with new_figure(5.6, 4.0) as (figure, axes):
        handles = []
        for curve, (color, marker) in zip(curves, series_styles(len(curves)), strict=True):
            _line_with_band(axes, *curve.arrays()[:3], color=color, marker=marker)
            handles.append(Line2D([], [], color=color, marker=marker, label=curve.label))
        for (_, height), dashes in zip(levels, LEVEL_DASHES, strict=False):
            axes.axhline(height, color=INK, lw=1.3, dashes=dashes)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks([1, 2, 5, 10, 20, 50])
        axes.set(xlabel=axis_labels[0], ylabel=axis_labels[1])
        edge = axes.get_xlim()[1]
        label_ends(axes, [(edge, height, label, INK) for label, height in levels])
        title_and_legend(axes, title, handles)
        return to_svg(figure)


def grouped_bars(
    groups: Sequence[str],
    bars: Mapping[str, tuple[ArrayLike, ArrayLike]],
    unit: str,
    title: str = "",
) -> str:
    """Plot bars side by side; the axis starts where differences are visible, not at 0.

    `bars` has, by label, the heights and the half-widths of 95 % intervals, one per group.
    """
    width = 0.8 / max(len(bars), 1)
    with new_figure(5.6, 3.8) as (figure, axes):
        lowest, handles = np.inf, []
        styles = series_styles(len(bars))
        for number, (label, (color, _)) in enumerate(zip(bars, styles, strict=True)):
            places, heights, ci95 = same_length(label, np.arange(len(groups)), *bars[label])
            places += (number - (len(bars) - 1) / 2) * width
            look: dict[str, Any] = {"facecolor": color, "hatch": HATCHES[number]}
            look |= {"edgecolor": INK, "lw": 0.6}
            axes.bar(places, heights, 0.92 * width, **look)
            axes.errorbar(places, heights, ci95, ls="none", color=INK, lw=1.2, capsize=3)
            lowest = min(lowest, float((heights - np.nan_to_num(ci95)).min()))
            handles.append(Patch(**look, label=label))
        axes.set_xticks(range(len(groups)), groups)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(unit)
        axes.set_ylim(max(0.0, np.floor(lowest / 5) * 5 - 5), 100)
        title_and_legend(axes, title, handles)
        return to_svg(figure)


def accuracy_dots(results: Sequence[Result], title: str = "") -> str:
    """Plot the accuracy of every method as a dot with its 95 % interval, one series per shot."""
    if not results:
        raise DataError("there is no result to plot.")
    methods = list(dict.fromkeys(result.method for result in results))
    shots = list(dict.fromkeys(result.shot for result in results))
    with new_figure(5.6, 1.5 + 0.36 * len(methods)) as (figure, axes):
        handles = []
        for shot, (color, marker) in zip(shots, series_styles(len(shots)), strict=True):
            of_shot = [result for result in results if result.shot == shot]
            look: dict[str, Any] = {"color": color, "marker": marker, "ls": "none"}
            axes.errorbar(
                [result.accuracy for result in of_shot],
                [methods.index(result.method) for result in of_shot],
                xerr=[result.ci95 for result in of_shot],
                markersize=6,
                capsize=4,
                **look,
            )
            handles.append(Line2D([], [], **look, label=f"{shot}-shot"))
        axes.set_yticks(range(len(methods)), methods)
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10]))
        axes.set_xlabel("accuracy in %, bars: 95 % intervals")
        title_and_legend(axes, title, handles)
        return to_svg(figure)


def value_by_epoch(values: Sequence[float], name: str, title: str = "") -> str:
    """Plot a value after each training epoch as a line, the axis from zero."""
    if not values:
        raise DataError("there is no epoch to plot.")
    with new_figure(5.6, 2.6) as (figure, axes):
        ((color, marker),) = series_styles(1)
        axes.plot(range(1, len(values) + 1), values, color=color, marker=marker)
        axes.set(xlabel="epoch", ylabel=name)
        axes.set_xlim(0.5, len(values) + 0.5)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_title(title, fontweight="bold")
        return to_svg(figure)


def _line_with_band(
    axes: Axes,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    ci95: NDArray[np.float64],
    **look: Any,
) -> None:
    axes.fill_between(x, y - ci95, y + ci95, color=look["color"], alpha=0.22, lw=0)
    axes.plot(x, y, **look)
