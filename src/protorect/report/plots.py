"""Plots as SVG text: for a page, a document or a file of their own.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from protorect.errors import DataError
from protorect.evaluation import Result

BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
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


@dataclass(frozen=True)
class ZCurve:
    """Accuracy measured for several Z, and what theory expects.

    Parameters
    ----------
    label
        What the line is of, such as "1-shot".
    z
        (n,), how many pseudo-labelled queries could join each class.
    accuracy, ci95
        (n,), in percent, and the half-widths of the 95 % intervals.
    expected
        (n,), in percent, drawn dashed; None for no such line.
    """

    label: str
    z: ArrayLike
    accuracy: ArrayLike
    ci95: ArrayLike
    expected: ArrayLike | None = None

    @classmethod
    def of(
        cls, label: str, z: ArrayLike, results: Sequence[Result], expected: ArrayLike | None = None
    ) -> ZCurve:
        """From one result for each Z."""
        accuracy = [result.accuracy for result in results]
        return cls(label, z, accuracy, [result.ci95 for result in results], expected)

    def arrays(self) -> tuple[NDArray[np.float64], ...]:
        """z, accuracy, ci95 and, where there is one, expected, all of one length."""
        given = (self.z, self.accuracy, self.ci95, self.expected)
        arrays = tuple(np.asarray(one, dtype=np.float64) for one in given if one is not None)
        shapes = [array.shape for array in arrays]
        if len(set(shapes)) > 1 or len(shapes[0]) != 1 or shapes[0] == (0,):
            raise DataError(f"curve {self.label!r} needs values of one length, got {shapes}.")
        return arrays


def accuracy_against_z(
    curves: Sequence[ZCurve], title: str = "", limits: tuple[float, float] | None = None
) -> str:
    """Measured accuracy against Z as solid lines with 95 % bands, expected accuracy dashed.

    Parameters
    ----------
    curves
        One or more, each labelled at its right end.
    title
        Above the plot.
    limits
        Of the accuracy axis, for plots to be compared; see `accuracy_limits`.
    """
    with _drawing(5.6, 4.2) as (figure, axes):
        ends = []
        for curve, (colour, marker) in zip(curves, _series(len(curves)), strict=True):
            z, accuracy, ci95, *expected = curve.arrays()
            axes.fill_between(z, accuracy - ci95, accuracy + ci95, color=colour, alpha=0.22, lw=0)
            axes.plot(z, accuracy, color=colour, marker=marker)
            for line in expected:
                axes.plot(z, line, color=colour, dashes=(4, 2), lw=1.8)
            ends.append((float(z[-1]), float(accuracy[-1]), curve.label, colour))
        axes.set(xlabel="Z, queries that may join each class", ylabel="accuracy in %")
        axes.set_ylim(limits or accuracy_limits(curves))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _label_ends(axes, ends)
        measured = Line2D([], [], color=INK, marker="o", label="measured")
        keys: list[Line2D | Patch] = [measured, Patch(color=INK, alpha=0.22, label="95 % interval")]
        if any(curve.expected is not None for curve in curves):
            keys.append(Line2D([], [], color=INK, dashes=(4, 2), lw=1.8, label="theory"))
        _head(axes, title, keys)
        return _svg(figure)


def accuracy_limits(curves: Sequence[ZCurve]) -> tuple[float, float]:
    """Limits of an accuracy axis that all of these curves fit into, in steps of 5 %."""
    if not curves:
        raise DataError("no curve given to draw.")
    values = []
    for curve in curves:
        _, accuracy, ci95, *expected = curve.arrays()
        values += [accuracy - np.nan_to_num(ci95), accuracy + np.nan_to_num(ci95), *expected]
    every = np.concatenate(values)
    low, high = math.floor(every.min() / 5) * 5, math.ceil(every.max() / 5) * 5
    return float(low), float(high if high > low else low + 5)


def accuracy_dots(results: Sequence[Result], title: str = "") -> str:
    """Accuracy of every method as a dot with its 95 % interval, a series a shot."""
    if not results:
        raise DataError("no result given to draw.")
    methods = list(dict.fromkeys(result.method for result in results))
    shots = list(dict.fromkeys(result.shot for result in results))
    with _drawing(5.6, 1.5 + 0.36 * len(methods)) as (figure, axes):
        keys = []
        for shot, (colour, marker) in zip(shots, _series(len(shots)), strict=True):
            of_shot = [result for result in results if result.shot == shot]
            axes.errorbar(
                [result.accuracy for result in of_shot],
                [methods.index(result.method) for result in of_shot],
                xerr=[result.ci95 for result in of_shot],
                color=colour,
                marker=marker,
                linestyle="none",
                markersize=6,
                capsize=4,
            )
            label = f"{shot}-shot"
            keys.append(Line2D([], [], color=colour, marker=marker, ls="none", label=label))
        axes.set_yticks(range(len(methods)), methods)
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10]))
        axes.set_xlabel("accuracy in %, bars: 95 % intervals")
        _head(axes, title, keys)
        return _svg(figure)


def episode_pictures(
    support: NDArray[Any],
    query: NDArray[Any],
    predicted: NDArray[np.integer[Any]],
    names: Sequence[str],
    title: str = "",
    cmap: str = "gray",
) -> str:
    """An episode as pictures: a row a class, its support first, wrongly labelled queries marked.

    Parameters
    ----------
    support
        (way, height, width) or (way, height, width, 3), one picture a class.
    query
        (way, n, height, width) or with colours, the queries of each class.
    predicted
        (way, n), the class position each query was given.
    names
        Of the classes.
    title
        Above the pictures.
    cmap
        How matplotlib is to show grey values; "gray_r" where large values are dark.
    """
    way, columns = predicted.shape
    if len(support) != way or len(names) != way or query.shape[:2] != (way, columns):
        raise DataError(
            f"an episode of {way} classes with {columns} queries each needs as many pictures, got "
            f"support {support.shape}, query {query.shape} and {len(names)} names."
        )
    pitch, step, gap = 1.42, 1.12, 0.7  # of rows, of queries, between support and queries
    width, height = 1.05 + gap + columns * step, way * pitch + 0.68  # in pictures
    with _drawing(5.6, 5.6 * height / width + 0.35) as (figure, axes):
        values = np.concatenate([support.ravel(), query.ravel()])
        grey = Normalize(values.min(), values.max())  # the same for all
        for row, column in np.ndindex(way, columns + 1):
            picture = support[row] if column == 0 else query[row, column - 1]
            given = row if column == 0 else int(predicted[row, column - 1])
            left = 0.0 if column == 0 else 1 + gap + (column - 1) * step
            corner = (left, row * pitch)
            _picture(axes, picture, corner, names[given], given == row, cmap=cmap, norm=grey)
        axes.text(0.5, -0.25, "support", ha="center")
        axes.text(1 + gap, -0.25, "queries, and what they were taken for")
        axes.axvline(1 + gap / 2, color=INK, alpha=0.4, lw=0.8, ymax=0.93)
        axes.set(xlim=(-0.05, width - 0.05), ylim=(height - 0.7, -0.7))
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set_title(title, fontweight="bold")
        return _svg(figure)


def _picture(
    axes: Axes,
    picture: NDArray[Any],
    corner: tuple[float, float],
    name: str,
    right: bool,
    **shades: Any,
) -> None:
    """One framed picture of size 1 with a name below; the axis points down."""
    left, top = corner
    colour, line, weight = (INK, 0.6, "normal") if right else (VERMILLION, 3.0, "bold")
    axes.imshow(picture, interpolation="none", extent=(left, left + 1, top + 1, top), **shades)
    axes.add_patch(
        Rectangle(corner, 1, 1, fill=False, edgecolor=colour, linewidth=line, clip_on=False)
    )
    shown = name if right else f"{name}?"
    axes.text(left + 0.5, top + 1.3, shown, ha="center", fontsize=9, color=colour, weight=weight)


def _series(count: int) -> tuple[tuple[str, str], ...]:
    if count > len(SERIES):
        raise DataError(f"{count} series in one plot; up to {len(SERIES)} can be told apart.")
    return SERIES[:count]


def _head(axes: Axes, title: str, keys: Sequence[Line2D | Patch]) -> None:
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


def _label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
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
def _drawing(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure of so many inches and its axes, in our style whatever the user's settings are."""
    with style.context(STYLE, after_reset=True):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()


def _svg(figure: Figure) -> str:
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
