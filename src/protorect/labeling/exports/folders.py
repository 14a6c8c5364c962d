"""One folder per class with links to the pictures, or copies."""

from pathlib import Path

from protorect.labeling.exports import Rows
from protorect.labeling.exports.placing import place_pictures

FOLDER = True


def write(rows: Rows, path: Path) -> None:
    """Place every picture in the folder of its class."""
    place_pictures([(row, row.label) for row in rows], path, rows.options.copy)
