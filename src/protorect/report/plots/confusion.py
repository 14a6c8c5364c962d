"""The confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray

from protorect.report.style import BLUE, INK, new_figure, to_svg

MOST_WITH_COUNTS = 30  # classes; with more, counts would be too small to read
_SHADES = LinearSegmentedColormap.from_list("shades", [(0, 0.45, 0.7, 0.0), BLUE])


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
