"""Episodes: their samples in two dimensions, and the bias of prototypes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from protorect.errors import DataError
from protorect.report.style import (
    INK,
    add_legend,
    new_figure,
    same_length,
    series_styles,
    to_svg,
)

EDGE: dict[str, Any] = {"edgecolor": INK, "lw": 1.0, "zorder": 3}
PROTOTYPES = {"basic": ("*", 190), "rectified": ("D", 60), "expected": ("^", 100)}  # marker, size
MEAN_MARKERS = (("P", INK), ("X", "none"), ("X", INK))  # support, queries before and after
Points = NDArray[np.float64]


def prototypes_in_episode(
    query: ArrayLike,
    query_way: ArrayLike,
    basic: ArrayLike,
    rectified: ArrayLike,
    expected: ArrayLike,
    title: str,
) -> str:
    """Plot queries (n_query, 2) of classes (n_query,) and three kinds of prototypes (way, 2).

    A dotted line joins the basic and the expected prototype, a solid one the rectified.
    """
    queries, way = _points(query), np.asarray(query_way)
    prototypes = [_points(kind) for kind in (basic, rectified, expected)]
    colors = [color for color, _ in series_styles(len(prototypes[0]))]
    with new_figure(5.6, 5.2) as (figure, axes):
        for number, color in enumerate(colors):
            _dots(axes, queries[way == number], s=22, color=color, alpha=0.45, lw=0)
        for number, color in enumerate(colors):
            start, moved, end = (kind[number] for kind in prototypes)
            axes.plot(*zip(start, end, strict=True), color=INK, lw=1.2, dashes=(1, 1.5))
            axes.plot(*zip(moved, end, strict=True), color=INK, lw=1.2)
            for kind, (marker, size) in zip(prototypes, PROTOTYPES.values(), strict=True):
                _dots(axes, kind[number], s=size, marker=marker, color=color, **EDGE)
        _hide_axes(axes)
        handles = [_handle(marker, name) for name, (marker, _) in PROTOTYPES.items()]
        add_legend(axes, [*handles, _handle("o", "query", alpha=0.45)], title)
        return to_svg(figure)


def queries_shifted(
    support: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    query_way: ArrayLike,
    centres: ArrayLike,
    title: str,
) -> str:
    """Plot queries before (hollow) and after the shift (filled), the class that moved most zoomed.

    One support sample per class (way, 2), queries (n_query, 2) of classes (n_query,), and the
    centres (3, 2): means of the support, of the queries before and of those after the shift.
    """
    points = {"support": support, "before": before, "after": after, "centres": centres}
    samples = {name: _points(values) for name, values in points.items()}
    way = np.asarray(query_way)
    with new_figure(5.6, 3.7) as (figure, axes):
        _plot_shift(axes, samples, way)
        _hide_axes(axes)
        low, high = axes.get_xlim()
        axes.set_xlim(low, high + 0.95 * (high - low))  # space for the inset
        inset = axes.inset_axes((0.53, 0.02, 0.46, 0.96))
        _plot_shift(inset, samples, way, lines=True)
        lower, upper = _zoom_window(samples, way)
        inset.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), xticks=[], yticks=[])
        inset.grid(visible=False)
        inset.spines[["top", "right"]].set_visible(True)
        axes.indicate_inset_zoom(inset, edgecolor=INK)
        hollow = _handle("o", "before", markerfacecolor="none")
        handles = [_handle("*", "support"), hollow, _handle("o", "after"), _handle("X", "means")]
        add_legend(axes, handles, title)
        return to_svg(figure)


def _plot_shift(
    axes: Axes, samples: Mapping[str, Points], way: NDArray[np.int64], lines: bool = False
) -> None:
    for number, (color, _) in enumerate(series_styles(len(samples["support"]))):
        before, after = samples["before"][way == number], samples["after"][way == number]
        if lines:
            axes.plot(*np.stack([before, after]).transpose(2, 0, 1), color=color, lw=0.9, alpha=0.6)
        _dots(axes, before, s=20, facecolor="none", edgecolor=color, lw=0.9)
        _dots(axes, after, s=20, color=color, lw=0)
        _dots(axes, samples["support"][number], s=170, marker="*", color=color, **EDGE)
    for point, (marker, face) in zip(samples["centres"], MEAN_MARKERS, strict=True):
        _dots(axes, point, s=55, marker=marker, facecolor=face, edgecolor=INK, zorder=4)


def _zoom_window(samples: Mapping[str, Points], way: NDArray[np.int64]) -> tuple[Points, Points]:
    """Corners of a box around the class whose queries moved most in the projection."""
    moved = np.linalg.norm(samples["after"] - samples["before"], axis=1)
    most = int(np.argmax(np.bincount(way, moved) / np.bincount(way)))
    queries = [samples[name][way == most] for name in ("before", "after")]
    points = np.concatenate([*queries, samples["support"][[most]]])
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.08 * (high - low) + 1e-9
    return low - margin, high + margin


def bias_by_class(basic: ArrayLike, rectified: Mapping[str, ArrayLike], title: str) -> str:
    """Plot one dot per class: angle of the basic and of the rectified to the expected prototype.

    Angles (classes,) in degrees; dots below the diagonal moved towards the expected prototype.
    """
    with new_figure(5.6, 5.4) as (figure, axes):
        handles, top = [], 0.0
        for label, (color, marker) in zip(rectified, series_styles(len(rectified)), strict=True):
            x, y = same_length(label, basic, rectified[label])
            axes.scatter(x, y, s=14, color=color, marker=marker, alpha=0.6, lw=0)
            handles.append(Line2D([], [], color=color, marker=marker, ls="none", label=label))
            top = max(top, float(x.max()), float(y.max()))
        top = 5 * np.ceil(top / 5)
        axes.plot((0, top), (0, top), color=INK, lw=1.2, dashes=(4, 2))
        axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")
        axes.set_xlabel("basic to expected prototype, degrees")
        axes.set_ylabel("rectified to expected, degrees")
        add_legend(axes, handles, title)
        return to_svg(figure)


def _points(values: ArrayLike) -> Points:
    points = np.asarray(values, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise DataError(f"points must be (n, 2), got shape {points.shape}.")
    return points


def _dots(axes: Axes, points: Points, **style: Any) -> None:
    axes.scatter(points[..., 0], points[..., 1], **style)


def _hide_axes(axes: Axes) -> None:
    """Remove ticks, grid and frame: the axes of a projection have no meaning."""
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)


def _handle(marker: str, label: str, **style: Any) -> Line2D:
    """A legend entry of a marker."""
    return Line2D([], [], color=INK, marker=marker, markersize=8, ls="none", label=label, **style)
