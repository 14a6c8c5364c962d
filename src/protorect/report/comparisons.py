"""Plots that compare: bars side by side, and accuracy along a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter, ScalarFormatter
from numpy.typing import ArrayLike

from protorect.errors import DataError
from protorect.report.drawing import INK, drawing, head, label_ends, series, svg_text

HATCHES = ("", "///", "\\\\\\", "--")  # so that bars differ in grey, too
LEVEL_DASHES = ((6, 2), (1, 1.5))


@dataclass(frozen=True)
class Bars:
    """Bars of one colour: a height for each group, with half-widths of 95 % intervals."""

    label: str
    heights: ArrayLike
    ci95: ArrayLike


def grouped_bars(groups: Sequence[str], bars: Sequence[Bars], unit: str, title: str = "") -> str:
    """Bars side by side in each group; the axis starts where differences can be seen.

    Parameters
    ----------
    groups
        Names below the axis.
    bars
        Up to four, each with a height for every group.
    unit
        Of the heights, beside the axis.
    title
        Above the plot.
    """
    colours = series(len(bars))
    width = 0.8 / max(len(bars), 1)
    with drawing(5.6, 3.8) as (figure, axes):
        lowest, keys = np.inf, []
        for number, (one, (colour, _)) in enumerate(zip(bars, colours, strict=True)):
            heights = np.asarray(one.heights, dtype=np.float64)
            ci95 = np.asarray(one.ci95, dtype=np.float64)
            if heights.shape != (len(groups),) or ci95.shape != heights.shape:
                raise DataError(
                    f"{one.label!r} needs a height and an interval for each of {len(groups)} "
                    f"groups, got {heights.shape} and {ci95.shape}."
                )
            places = np.arange(len(groups)) + (number - (len(bars) - 1) / 2) * width
            look: dict[str, Any] = {"facecolor": colour, "hatch": HATCHES[number]}
            look |= {"edgecolor": INK, "lw": 0.6}
            axes.bar(places, heights, 0.92 * width, **look)
            axes.errorbar(places, heights, ci95, ls="none", color=INK, lw=1.2, capsize=3)
            lowest = min(lowest, float((heights - np.nan_to_num(ci95)).min()))
            keys.append(Patch(**look, label=one.label))
        axes.set_xticks(range(len(groups)), groups)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(unit)
        axes.set_ylim(max(0.0, np.floor(lowest / 5) * 5 - 5), 100)
        head(axes, title, keys)
        return svg_text(figure)


@dataclass(frozen=True)
class Along:
    """A measured line along a setting; x, y and ci95 of one length."""

    label: str
    x: ArrayLike
    y: ArrayLike
    ci95: ArrayLike


def lines_along(
    lines: Sequence[Along],
    axis: tuple[str, str],
    levels: Sequence[tuple[str, float]] = (),
    title: str = "",
) -> str:
    """Lines with 95 % bands along a setting on a logarithmic axis, and levels to compare with.

    Parameters
    ----------
    lines
        Up to four.
    axis
        What the two axes are.
    levels
        Up to two names and heights, drawn across and named at the right: dashed, then dotted.
    title
        Above the plot.
    """
    with drawing(5.6, 4.0) as (figure, axes):
        keys = []
        for line, (colour, marker) in zip(lines, series(len(lines)), strict=True):
            x, y, ci95 = (np.asarray(v, dtype=np.float64) for v in (line.x, line.y, line.ci95))
            if not x.shape == y.shape == ci95.shape:
                raise DataError(f"line {line.label!r} needs values of one length.")
            axes.fill_between(x, y - ci95, y + ci95, color=colour, alpha=0.22, lw=0)
            axes.plot(x, y, color=colour, marker=marker)
            keys.append(Line2D([], [], color=colour, marker=marker, label=line.label))
        for (_, height), dashes in zip(levels, LEVEL_DASHES, strict=False):
            axes.axhline(height, color=INK, lw=1.3, dashes=dashes)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks([1, 2, 5, 10, 20, 50])
        axes.set(xlabel=axis[0], ylabel=axis[1])
        edge = axes.get_xlim()[1]
        label_ends(axes, [(edge, height, label, INK) for label, height in levels])
        head(axes, title, keys)
        return svg_text(figure)
