"""The style of all plots, and their SVG text.

Text and axes take the color of the text around them (`currentColor`) and the background is
transparent, so a plot is readable on light and dark pages and in print. Series differ in color (the
palette of Okabe and Ito, safe for color-blind readers) and in marker. The same input gives the same
text, byte by byte.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray

from protorect.errors import DataError

BLUE, VERMILLION = "#0072b2", "#d55e00"
SERIES = ((BLUE, "o"), (VERMILLION, "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#e69f00", "v"))
INK = "#010203"  # as in protorect.mplstyle; becomes currentColor
GRAY = "#767676"  # readable on white and on black
SVG = "http://www.w3.org/2000/svg"

STYLE = Path(__file__).with_name("protorect.mplstyle")
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


@contextmanager
def new_figure(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure of this size in inches and its axes, in our style whatever the user's settings."""
    with style.context(STYLE, after_reset=True):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()


def to_svg(figure: Figure) -> str:
    """The <svg> element of a figure, with no id that another plot has."""
    text = io.StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(text, format="svg", metadata=no_metadata)
    root = ElementTree.fromstring(text.getvalue())
    for definitions in root.findall(f"{{{SVG}}}defs"):
        for rules in definitions.findall(f"{{{SVG}}}style"):
            definitions.remove(rules)  # they would apply to the whole page around the plot
    root.set("style", "stroke-linejoin: round")
    prefix = f"p{sha256(text.getvalue().encode()).hexdigest()[:8]}-"
    for element in root.iter():
        if element.tag in (f"{{{SVG}}}g", f"{{{SVG}}}image"):
            element.attrib.pop("id", None)  # nothing refers to it
        for name, value in element.items():
            element.set(name, _attribute(name, value, prefix))
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, value: str, prefix: str) -> str:
    """An attribute with `prefix` before every id, and the color of the text around for INK."""
    if name == "id":
        return prefix + value
    if name.endswith("href") and value.startswith("#"):
        return f"#{prefix}{value[1:]}"
    return value.replace("url(#", f"url(#{prefix}").replace(INK, "currentColor")


def standalone_svg(svg: str, color: str = GRAY) -> str:
    """An SVG file of an <svg> element, text and axes in this color."""
    return svg.replace("<svg ", f'<svg color="{color}" ', 1) + "\n"


def series_styles(count: int) -> tuple[tuple[str, str], ...]:
    """Color and marker of each of `count` series or classes."""
    if count > len(SERIES):
        raise DataError(
            f"{count} series or classes in one plot; at most {len(SERIES)} can be distinguished."
        )
    return SERIES[:count]


def add_legend(
    axes: Axes, handles: Sequence[Line2D | Patch], title: str = "", columns: int | None = None
) -> None:
    """Add a legend above the axes, where no data is, and the title above it.

    It has one row, or `columns`: where it is wider than the figure, the axes become narrow.
    """
    columns = columns or len(handles)
    rows = -(-len(handles) // columns)
    axes.set_title(title, pad=12 + 18 * rows)
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns)


def same_length(label: str, *values: ArrayLike) -> list[NDArray[np.float64]]:
    """The values as one-dimensional arrays of one length, at least 1."""
    arrays = [np.asarray(array, dtype=np.float64) for array in values]
    shapes = [array.shape for array in arrays]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or shapes[0] == (0,):
        raise DataError(f"{label!r} needs values of one length, got shapes {shapes}.")
    return arrays
