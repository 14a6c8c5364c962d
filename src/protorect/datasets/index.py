"""The index of a packed data set: one line per picture."""

from typing import NamedTuple

INDEX = "index.csv"
_OF_PACKING = ("split", "row", "class", "path", "width", "height", "bytes", "sha256", "problem")
COLUMNS = (*_OF_PACKING, "box", "group")


class IndexLine(NamedTuple):
    """The index of one picture from the column `class` on; `problem` says why it is unreadable."""

    class_name: str
    path: str
    width: int
    height: int
    length: int
    sha256: str
    problem: str
    box: str = ""  # left, top, right and bottom of the part that was used, if that was given
    group: str = ""  # what its near-duplicates of the same class share, if the data set has groups
