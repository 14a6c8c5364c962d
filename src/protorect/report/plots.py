"""Plots as SVG text: for a page, a document or a file of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from protorect.errors import DataError
from protorect.evaluation.evaluate import Result
from protorect.report.drawing import (
    INK,
    VERMILLION,
    drawing,
    head,
    label_ends,
    series,
    svg_text,
)


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
    with drawing(5.6, 4.2) as (figure, axes):
        ends = []
        for curve, (colour, marker) in zip(curves, series(len(curves)), strict=True):
            z, accuracy, ci95, *expected = curve.arrays()
            axes.fill_between(z, accuracy - ci95, accuracy + ci95, color=colour, alpha=0.22, lw=0)
            axes.plot(z, accuracy, color=colour, marker=marker)
            for line in expected:
                axes.plot(z, line, color=colour, dashes=(4, 2), lw=1.8)
            ends.append((float(z[-1]), float(accuracy[-1]), curve.label, colour))
        axes.set(xlabel="Z, queries that may join each class", ylabel="accuracy in %")
        axes.set_ylim(limits or accuracy_limits(curves))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        label_ends(axes, ends)
        measured = Line2D([], [], color=INK, marker="o", label="measured")
        keys: list[Line2D | Patch] = [measured, Patch(color=INK, alpha=0.22, label="95 % interval")]
        if any(curve.expected is not None for curve in curves):
            keys.append(Line2D([], [], color=INK, dashes=(4, 2), lw=1.8, label="theory"))
        head(axes, title, keys)
        return svg_text(figure)


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
    with drawing(5.6, 1.5 + 0.36 * len(methods)) as (figure, axes):
        keys = []
        for shot, (colour, marker) in zip(shots, series(len(shots)), strict=True):
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
        head(axes, title, keys)
        return svg_text(figure)


def value_by_epoch(values: Sequence[float], name: str, title: str = "") -> str:
    """A value that training gave after each epoch, from the first on, as a line from zero."""
    if not values:
        raise DataError("no epoch given to draw.")
    with drawing(5.6, 2.6) as (figure, axes):
        ((colour, marker),) = series(1)
        axes.plot(range(1, len(values) + 1), values, color=colour, marker=marker)
        axes.set(xlabel="epoch", ylabel=name)
        axes.set_xlim(0.5, len(values) + 0.5)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_title(title, fontweight="bold")
        return svg_text(figure)


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
    with drawing(5.6, 5.6 * height / width + 0.35) as (figure, axes):
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
        return svg_text(figure)


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
