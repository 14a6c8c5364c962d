"""How every plot is drawn: our style, and SVG text for a page, a document or a file of its own.

Text and axes take the colour of the text around them (`currentColor`) and the ground is clear, so
a plot reads on light and dark pages and in print. Series differ in colour (Okabe and Ito's, which
the colour-blind can tell apart) and in marker. The same input gives the same text, byte by byte.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from protorect.errors import DataError

BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE = "#e69f00"
SERIES = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "^"), (PURPLE, "D"))
INK = "#010203"  # becomes currentColor
_ID, _REFERENCE = re.compile(r' id="([^"]+)"'), re.compile(r'(?:url\(|href=")#([^")]+)')
_PAGE_WIDE_STYLE = re.compile(r"\s*<defs>\s*<style[^>]*>\*{.*?</style>\s*</defs>", re.DOTALL)

STYLE: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "figure.facecolor": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: text is measured alike everywhere
    "font.size": 11,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "image.composite_image": False,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 5,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "protorect",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def series(count: int) -> tuple[tuple[str, str], ...]:
    """So many pairs of colour and marker; an error beyond what can be told apart."""
    if count > len(SERIES):
        raise DataError(f"{count} series in one plot; up to {len(SERIES)} can be told apart.")
    return SERIES[:count]


def head(axes: Axes, title: str, keys: Sequence[Line2D | Patch]) -> None:
    """Title and legend above the axes, where no data is."""
    axes.set_title(title, fontweight="bold", pad=30)
    axes.legend(
        handles=keys,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=len(keys),
        columnspacing=1.4,
        borderaxespad=0.3,
        borderpad=0,
    )


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """A name at the right end of every line, moved apart where two would overlap."""
    low, high = axes.get_ylim()
    apart, place = 0.075 * (high - low), -math.inf
    for x, y, label, colour in sorted(ends, key=lambda end: end[1]):
        place = max(y, place + apart)
        axes.annotate(
            label,
            xy=(x, y),
            xytext=(1.02, place),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 1, "shrinkA": 1, "shrinkB": 4},
        )


@contextmanager
def drawing(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure of so many inches and its axes, in our style whatever the user's settings are."""
    with style.context(STYLE, after_reset=True):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()


def svg_text(figure: Figure) -> str:
    """The <svg> element alone; only ids that it refers to, and none that another plot has."""
    text = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(text, format="svg", metadata=nothing)
    drawn = text.getvalue()
    svg = drawn[drawn.index("<svg") :].replace(INK, "currentColor")
    svg = _PAGE_WIDE_STYLE.sub("", svg, count=1)
    svg = svg.replace("<svg ", '<svg style="stroke-linejoin: round" ', 1)
    mark = "p" + hashlib.sha256(svg.encode()).hexdigest()[:8]
    wanted = set(_REFERENCE.findall(svg))
    svg = _ID.sub(lambda found: f' id="{mark}-{found[1]}"' if found[1] in wanted else "", svg)
    return _REFERENCE.sub(lambda found: found[0].replace("#", f"#{mark}-"), svg)
