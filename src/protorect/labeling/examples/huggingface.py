"""A Hugging Face image folder: `metadata.jsonl` with file_name and label, in it or in its parts."""

import json
import os
from itertools import repeat
from pathlib import Path
from typing import Any

from protorect._utils.documents import read_json_lines
from protorect._utils.files import names_in
from protorect._utils.text import printable
from protorect.labeling.examples.found import CHECKED, Example, Found, Row, example_of

METADATA = "metadata.jsonl"
_LINE = {"file_name": Path, "label": {str, range(-(2**53), 2**53)}, "status?": str}


def recognizes(path: str, head: bytes) -> bool:
    """Whether it is such a folder, or its metadata."""
    return bool(_files(path)) if os.path.isdir(path) else _is_metadata(head)


def read(path: str, nested: bool) -> Found:
    """Every line; one that `protorect export` wrote about an unchecked picture is none."""
    files = _files(path) if os.path.isdir(path) else [path]
    return Found([example for file in files for example in _read(file)])


def _read(file: str) -> list[Example]:
    examples = []
    remedy = "Each line needs file_name and label."
    for number, line in enumerate(read_json_lines(file, repeat(_LINE), remedy), 1):
        if line.get("status", CHECKED[0]) in CHECKED:
            row = Row(f"{printable(file)}, line {number}", line["file_name"], str(line["label"]))
            examples.append(example_of(row, row.label, os.path.dirname(os.path.abspath(file))))
    return examples


def _files(folder: str) -> list[str]:
    """The metadata of a folder and of the folders in it, such as train."""
    files = (os.path.join(folder, name, METADATA) for name in ("", *names_in(folder)))
    return [file for file in files if os.path.exists(file)]


def _is_metadata(head: bytes) -> bool:
    try:
        line: Any = json.loads(head.decode("utf-8-sig", "replace").splitlines()[0])
    except (ValueError, IndexError, RecursionError):
        return False
    return isinstance(line, dict) and "file_name" in line
