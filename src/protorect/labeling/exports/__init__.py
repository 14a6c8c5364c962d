"""File formats of predictions, one module per format.

A format is a module of this package with two functions: `check()` raises a ProtorectError if files
of this format cannot be written here, and `write(rows, path)` writes predictions to a file.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from protorect._utils.files import written_whole
from protorect.errors import unknown_name
from protorect.labeling.prediction import Prediction

# Each format and what it is for; the module of `label-studio` would be label_studio.py.
FORMATS = {
    "csv": "a table that every program reads",
    "parquet": "a table with types, for data frames and databases",
}


def check_format(name: str) -> None:
    """Raise a ProtorectError if there is no such format, or if it needs an extra."""
    _module(name).check()


def export(rows: Sequence[Prediction], path: str | os.PathLike[str], format: str) -> None:  # noqa: A002
    """Write predictions to a file of this format, whole or not at all."""
    module = _module(format)
    module.check()
    with written_whole(Path(path)) as temporary:
        module.write(rows, temporary)


def _module(name: str) -> ModuleType:
    if name not in FORMATS:
        raise unknown_name("export format", name, FORMATS)
    return import_module(f"protorect.labeling.exports.{name.replace('-', '_')}")
