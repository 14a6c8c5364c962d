"""Plots of points: an episode in two dimensions, and the bias of prototypes class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from protorect.errors import DataError
from protorect.report.drawing import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    VERMILLION,
    drawing,
    head,
    series,
    svg_text,
)

EDGE: dict[str, Any] = {"edgecolor": INK, "lw": 1.0, "zorder": 3}
MARKS = (("*", 190), ("D", 60), ("^", 100))  # basic, rectified, expected prototype
MEAN_MARKS = (("P", INK), ("X", "none"), ("X", INK))  # support, queries before and after
CLASS_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE)
Points = NDArray[np.float64]


@dataclass(frozen=True)
class ProjectedEpisode:
    """An episode in two dimensions; every part (n, 2).

    Parameters
    ----------
    query
        The queries.
    query_way
        (n_query,), the class position of each.
    basic, rectified, expected
        (way, 2), prototypes.
    """

    query: ArrayLike
    query_way: ArrayLike
    basic: ArrayLike
    rectified: ArrayLike
    expected: ArrayLike


@dataclass(frozen=True)
class ProjectedShift:
    """Queries before and after the shift in two dimensions; every part (n, 2).

    Parameters
    ----------
    support, before, after
        The support, and the same queries twice.
    query_way
        (n_query,), the class position of each query.
    centres
        (3, 2), of the support, the queries before and the queries after.
    """

    support: ArrayLike
    before: ArrayLike
    after: ArrayLike
    query_way: ArrayLike
    centres: ArrayLike


def prototypes_in_episode(episode: ProjectedEpisode, title: str = "") -> str:
    """Queries as dots, a colour a class; basic, rectified and expected prototypes, and the bias.

    A dotted line leads from the basic to the expected prototype, a solid one from the rectified.
    """
    query, way = _points(episode.query), np.asarray(episode.query_way)
    kinds = [_points(part) for part in (episode.basic, episode.rectified, episode.expected)]
    colours = _class_colours(len(kinds[0]))
    with drawing(5.6, 5.2) as (figure, axes):
        for number, colour in enumerate(colours):
            _dots(axes, query[way == number], s=22, color=colour, alpha=0.45, lw=0)
        for number, colour in enumerate(colours):
            basic, rectified, expected = (kind[number] for kind in kinds)
            _line(axes, basic, expected, color=INK, lw=1.2, dashes=(1, 1.5))
            _line(axes, rectified, expected, color=INK, lw=1.2)
            for place, (marker, size) in zip((basic, rectified, expected), MARKS, strict=True):
                _dots(axes, place[None], s=size, marker=marker, color=colour, **EDGE)
        _bare(axes)
        names = ("basic", "rectified", "expected")
        keys = [_mark(marker, name) for (marker, _), name in zip(MARKS, names, strict=True)]
        head(axes, title, [*keys, _mark("o", "query", faint=True)])
        return svg_text(figure)


def queries_shifted(shift: ProjectedShift, title: str = "") -> str:
    """Queries before (hollow) and after the shift (filled), the class that moved most enlarged.

    Crosses are the means of the queries before (hollow) and after, a plus that of the support.
    """
    shown = {
        name: _points(getattr(shift, name)) for name in ("support", "before", "after", "centres")
    }
    way = np.asarray(shift.query_way)
    with drawing(5.6, 3.7) as (figure, axes):
        _shifted(axes, shown, way)
        _bare(axes)
        low, high = axes.get_xlim()
        axes.set_xlim(low, high + 0.95 * (high - low))  # room for the part that is enlarged
        inset = axes.inset_axes((0.53, 0.02, 0.46, 0.96))
        _shifted(inset, shown, way, lines=True)
        corner, far = _window(shown, way)
        inset.set(xlim=(corner[0], far[0]), ylim=(corner[1], far[1]), xticks=[], yticks=[])
        inset.grid(visible=False)
        inset.spines[["top", "right"]].set_visible(True)
        axes.indicate_inset_zoom(inset, edgecolor=INK)
        head(
            axes,
            title,
            [
                _mark("*", "support"),
                _mark("o", "before", hollow=True),
                _mark("o", "after"),
                _mark("X", "means"),
            ],
        )
        return svg_text(figure)


def _shifted(
    axes: Axes, shown: dict[str, Points], way: NDArray[np.int64], lines: bool = False
) -> None:
    for number, colour in enumerate(_class_colours(len(shown["support"]))):
        before, after = shown["before"][way == number], shown["after"][way == number]
        if lines:
            for start, end in zip(before, after, strict=True):
                _line(axes, start, end, color=colour, lw=0.9, alpha=0.6)
        _dots(axes, before, s=20, facecolor="none", edgecolor=colour, lw=0.9)
        _dots(axes, after, s=20, color=colour, lw=0)
        _dots(axes, shown["support"][[number]], s=170, marker="*", color=colour, **EDGE)
    for place, (marker, face) in zip(shown["centres"], MEAN_MARKS, strict=True):
        _dots(axes, place[None], s=55, marker=marker, facecolor=face, edgecolor=INK, zorder=4)


def _window(shown: dict[str, Points], way: NDArray[np.int64]) -> tuple[Points, Points]:
    """A box around the class whose queries moved most in the projection."""
    moved = np.linalg.norm(shown["after"] - shown["before"], axis=1)
    most = int(np.argmax(np.bincount(way, moved) / np.bincount(way)))
    own = [shown["before"][way == most], shown["after"][way == most], shown["support"][[most]]]
    points = np.concatenate(own)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.08 * (high - low) + 1e-9
    return low - margin, high + margin


def bias_by_class(
    basic: ArrayLike, rectified: Sequence[tuple[str, ArrayLike]], title: str = ""
) -> str:
    """A dot a class: its angle from basic to expected prototype against that from rectified.

    Parameters
    ----------
    basic
        (classes,), in degrees.
    rectified
        Names and angles (classes,) of up to four ways to rectify. Dots below the line came nearer.
    title
        Above the plot.
    """
    start = np.asarray(basic, dtype=np.float64)
    with drawing(5.6, 5.4) as (figure, axes):
        keys, top = [], float(start.max())
        for (name, angles), (colour, marker) in zip(rectified, series(len(rectified)), strict=True):
            values = np.asarray(angles, dtype=np.float64)
            if values.shape != start.shape:
                raise DataError(f"{name} has angles {values.shape}, basic has {start.shape}.")
            axes.scatter(start, values, s=14, color=colour, marker=marker, alpha=0.6, lw=0)
            keys.append(Line2D([], [], color=colour, marker=marker, ls="none", label=name))
            top = max(top, float(values.max()))
        top = 5 * np.ceil(top / 5)
        axes.plot((0, top), (0, top), color=INK, lw=1.2, dashes=(4, 2))
        axes.set(
            xlim=(0, top),
            ylim=(0, top),
            xlabel="basic to expected prototype, degrees",
            ylabel="rectified to expected, degrees",
        )
        axes.set_aspect("equal")
        head(axes, title, keys)
        return svg_text(figure)


def _points(given: ArrayLike) -> Points:
    points = np.asarray(given, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise DataError(f"points must be (n, 2), got shape {points.shape}.")
    return points


def _dots(axes: Axes, points: Points, **look: Any) -> None:
    axes.scatter(points[:, 0], points[:, 1], **look)


def _line(axes: Axes, start: Points, end: Points, **look: Any) -> None:
    axes.plot([start[0], end[0]], [start[1], end[1]], **look)


def _class_colours(ways: int) -> tuple[str, ...]:
    if ways > len(CLASS_COLOURS):
        raise DataError(f"{ways} classes in one plot; {len(CLASS_COLOURS)} can be told apart.")
    return CLASS_COLOURS[:ways]


def _bare(axes: Axes) -> None:
    """The axes of a projection mean nothing."""
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)


def _mark(marker: str, label: str, hollow: bool = False, faint: bool = False) -> Line2D:
    face = "none" if hollow else INK
    return Line2D(
        [],
        [],
        color=INK,
        marker=marker,
        markerfacecolor=face,
        markersize=8,
        ls="none",
        label=label,
        alpha=0.45 if faint else 1.0,
    )
