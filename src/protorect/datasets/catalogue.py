"""The known data sets: where to get each, its license, its layout on disk."""

from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from protorect._utils.documents import COUNT, checked, read_toml
from protorect.datasets.layouts import DatasetPictures
from protorect.datasets.splits import ClassSplit, known_split
from protorect.errors import DataError, naming, unknown_name


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
    crop: str = ""
    groups: str = ""
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


_CATALOGUE = Path(__file__).parent / "catalogue.toml"
_FIELDS = {field.name: field for field in fields(Dataset) if field.name != "name"}
_DESCRIPTION = {
    name if field.default is MISSING else f"{name}?": COUNT if field.type is int else field.type
    for name, field in _FIELDS.items()
}


def dataset_of_table(name: str, table: Any) -> Dataset:
    """The data set that a table of the catalogue describes; DataError names table and field."""
    with naming(f"{_CATALOGUE.name}, table [{name}]"):
        try:
            checked(table, _DESCRIPTION)
        except ValueError as error:
            raise DataError(f"{error}.") from error
        for field in table:
            if field not in _FIELDS:
                raise unknown_name("field", field, _FIELDS)
    return Dataset(name, **table)


DATASETS = {name: dataset_of_table(name, table) for name, table in read_toml(_CATALOGUE).items()}


def find_dataset(name: str) -> Dataset:
    """Return the data set of this name; the error for an unknown one suggests the nearest."""
    if name not in DATASETS:
        raise unknown_name("data set", name, DATASETS)
    return DATASETS[name]
