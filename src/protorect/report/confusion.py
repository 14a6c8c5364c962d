"""Which class was taken for which, as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray

from protorect.errors import DataError
from protorect.report.drawing import BLUE, INK, drawing, svg_text

MOST_NUMBERED = 30  # classes; with more, numbers would be too small to read
_SHADES = LinearSegmentedColormap.from_list("shades", [(0, 0.45, 0.7, 0.0), BLUE])


def confusion_plot(counts: NDArray[np.integer[Any]], names: Sequence[str], title: str = "") -> str:
    """A square of counts: the true classes down, what they were taken for across.

    Parameters
    ----------
    counts
        (ways, ways), row: the true class, column: the label.
    names
        Of the classes.
    title
        Above the plot.
    """
    ways = len(names)
    if counts.shape != (ways, ways) or not ways:
        raise DataError(f"counts of shape {counts.shape} do not fit {ways} classes.")
    side = min(9.0, 2.4 + 0.3 * ways)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    with drawing(side + 1.2, side) as (figure, axes):
        axes.pcolormesh(shares, cmap=_SHADES, vmin=0, vmax=1, edgecolors=INK, linewidth=0.05)
        middle = np.arange(ways) + 0.5
        small = max(5.0, min(10.0, 220 / ways))
        axes.set_xticks(middle, names, rotation=90, fontsize=small)
        axes.set_yticks(middle, names, fontsize=small)
        axes.set(xlim=(0, ways), ylim=(ways, 0), xlabel="label", ylabel="true class")
        axes.grid(visible=False)
        axes.set_title(title, fontweight="bold")
        if ways <= MOST_NUMBERED:
            for row, column in zip(*counts.nonzero(), strict=True):
                colour = "white" if shares[row, column] > 0.5 else INK
                at = (column + 0.5, row + 0.55)
                text = str(int(counts[row, column]))
                axes.text(*at, text, ha="center", va="center", fontsize=small, color=colour)
        return svg_text(figure)
