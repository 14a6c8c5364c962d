"""A CSV or TSV file with a path and a label per line."""

import os

from protorect._utils.files import read_bytes
from protorect._utils.tables import any_text, read_table
from protorect.labeling.examples.found import Found, Row, example_of

PATH, LABEL = ("path", "file", "filename", "file_name"), ("label", "class")


def recognizes(path: str, head: bytes) -> bool:
    """Whether it is any file."""
    return os.path.isfile(path)


def read(path: str, nested: bool) -> Found:
    """Every row; paths are relative to the folder of the table."""
    text = any_text(read_bytes(path))
    root = os.path.dirname(os.path.abspath(path))
    rows = read_table(path, (PATH, LABEL), header_required=False, text=text)
    return Found([example_of(Row(where, *cells), cells[1], root) for where, cells in rows])
