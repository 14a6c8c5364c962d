"""A `predictions.csv` of `protorect sort` or `protorect export`, as a person has edited it.

Rows with another label than was predicted, and those marked as accepted, are examples. In a sorted
folder its examples are read, too.
"""

import os
from pathlib import Path

from protorect._utils.files import read_bytes
from protorect._utils.tables import any_text, has_columns, read_table
from protorect._utils.text import printable
from protorect.labeling.examples.found import Found, Row, checked_rows, latest
from protorect.labeling.examples.sorted_folder import given_examples

_COLUMNS = ("path", "label", "probability", "folder")
OPTIONAL = ("status", "predicted", "folder", "runner_up", "placed")


def recognizes(path: str, head: bytes) -> bool:
    """Whether it is a table with the columns of predictions."""
    return os.path.isfile(path) and has_columns(any_text(head), _COLUMNS)


def read(path: str, nested: bool) -> Found:
    """The rows that a person has changed or accepted."""
    text = any_text(read_bytes(path))
    cells = read_table(path, ("path", "label"), optional=OPTIONAL, text=text)
    root = os.path.dirname(os.path.abspath(path))
    checked = checked_rows((Row(where, *row) for where, row in cells), root)
    given = given_examples(Path(root))
    notices = () if checked else (f"no label in {printable(path)} was changed or accepted",)
    return Found(latest([*given, *checked]), notices=notices, complete=bool(given))
