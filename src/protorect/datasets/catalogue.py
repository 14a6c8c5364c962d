"""The known data sets: where to get each, its license, its layout on disk."""

import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from protorect.datasets.layouts import DatasetPictures
from protorect.datasets.splits import ClassSplit, known_split
from protorect.errors import unknown_name


@dataclass(frozen=True)
class Dataset:
    """One table of catalogue.toml, which describes the fields."""

    name: str
    layout: str
    expects: str
    source: str
    license: str
    size: int = 84
    channels: int = 3
    bright_on_dark: bool = False
    rotations: int = 1
    flip: bool = True
    crop_padding: int = 8

    @property
    def split(self) -> ClassSplit | None:
        """The published class split, if this package has a copy."""
        return known_split(self.name)

    def find_classes(self, root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
        """Find the pictures of every class below `root`."""
        layout = import_module(f"protorect.datasets.layouts.{self.layout}")
        found: DatasetPictures = layout.find_classes(root, scratch, split)
        return found


_TABLES = tomllib.loads((Path(__file__).parent / "catalogue.toml").read_text(encoding="utf-8"))
DATASETS = {name: Dataset(name, **table) for name, table in _TABLES.items()}


def find_dataset(name: str) -> Dataset:
    """Return the data set of this name; the error for an unknown one suggests the nearest."""
    try:
        return DATASETS[name]
    except KeyError:
        raise unknown_name("data set", name, DATASETS) from None
