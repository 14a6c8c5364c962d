"""Formats that labeled pictures are exported to, one module per format.

A format is a module of this package with a function `write(rows, path)`, which writes `Rows`. The
rest is optional: `check()` raises a ProtorectError if this format cannot be written here, `FOLDER =
True` says that it is a folder and not a file, `SET_ASIDE = True` that pictures that are in no class
are part of it, `SUFFIX` ends the name of a file.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from protorect._utils.files import atomic_folder, atomic_write
from protorect._utils.parameters import Parameters, parameter
from protorect.errors import DataError, unknown_name
from protorect.labeling.prediction import Prediction

# Each format and what it is for; the module of `label-studio` is label_studio.py.
FORMATS = {
    "csv": "a table that every program reads",
    "parquet": "a table with types, for data frames and databases",
    "folders": "one folder per class with links or copies",
    "split": "folders train/CLASS and val/CLASS, as Ultralytics and torchvision read them",
    "huggingface": 'pictures with metadata.jsonl, for datasets.load_dataset("imagefolder")',
    "label-studio": "tasks with annotations and predictions, for import into Label Studio",
    "fiftyone": "data and labels.json, a FiftyOneImageClassificationDataset",
    "classifier": "a saved ImageClassifier made from the checked pictures",
}
CHECKED = ("example", "accepted")


class ExportOptions(Parameters):
    """Options of the formats; each uses those that it needs."""

    copy: bool = parameter(False, "Whether folders have copies of the pictures instead of links.")
    validation: float = parameter(
        0.2, "Share of every class in the val folder of `split`.", maximum=0.9
    )
    seed: int = parameter(0, "Seed of the random choice of `split`.", minimum=0)


@dataclass(frozen=True)
class Labeled:
    """One picture to export."""

    prediction: Prediction
    status: str = "proposed"  # example, accepted, proposed, unsure or unknown

    @property
    def path(self) -> str:
        """The file."""
        return self.prediction.path

    @property
    def label(self) -> str:
        """The most probable class, or the one that a person gave; empty if that is none of them."""
        return self.prediction.label

    @property
    def probability(self) -> float:
        """The probability of the label."""
        return self.prediction.probability

    @property
    def in_class(self) -> bool:
        """Whether the picture is in a class, and not set aside."""
        return bool(self.label) and self.prediction.folder == self.label

    @property
    def said_unknown(self) -> bool:
        """Whether a person said that the picture is of none of the classes."""
        return self.status == "unknown" and not self.label


@dataclass(frozen=True)
class Rows(Sequence[Labeled]):
    """The pictures to export, and how."""

    rows: tuple[Labeled, ...]
    options: ExportOptions = field(default_factory=ExportOptions)
    classifier: tuple[tuple[str, Any], ...] = ()  # arguments of ImageClassifier.from_examples

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        """A picture, or a slice of them."""
        return self.rows[index]

    @property
    def classes(self) -> list[str]:
        """The labels, sorted."""
        return sorted({row.label for row in self.rows if row.label})


def check_format(name: str) -> None:
    """Raise a ProtorectError if there is no such format, or if it needs an extra."""
    module = format_module(name)
    if hasattr(module, "check"):
        module.check()


def export(
    rows: Sequence[Prediction] | Rows,
    path: str | os.PathLike[str],
    format: str,  # noqa: A002
) -> int:
    """Write pictures in this format, whole or not at all; the number of pictures written."""
    check_format(format)
    module = format_module(format)
    if not isinstance(rows, Rows):
        rows = Rows(tuple(Labeled(row) for row in rows))
    if not getattr(module, "SET_ASIDE", False):
        rows = replace(rows, rows=tuple(row for row in rows if row.in_class))
    if not rows:
        raise DataError(f"there is no labeled picture to export as {format}.")
    whole = atomic_folder if getattr(module, "FOLDER", False) else atomic_write
    with whole(Path(path)) as temporary:
        count = module.write(rows, temporary)
    return len(rows) if count is None else int(count)


def format_module(name: str) -> ModuleType:
    """The module of a format."""
    if name not in FORMATS:
        raise unknown_name("export format", name, FORMATS)
    return import_module(f"protorect.labeling.exports.{name.replace('-', '_')}")
