"""CIFAR-FS: class folders, or the original Python files of CIFAR-100."""

import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from protorect.datasets.layouts import DatasetPictures, PicturesByClass, class_folders
from protorect.datasets.pickles import as_text, load_pickled_dict, store_raw
from protorect.datasets.splits import ClassSplit
from protorect.errors import DataError
from protorect.images.archives import uncompressed

_FOLDER = "cifar-100-python"
_FILES = ("meta", "train", "test")
_SIDE = 32


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find `cifar-100-python` with meta, train and test, its tar.gz, or class folders."""
    for folder in (root, root / _FOLDER):
        if all((folder / name).is_file() for name in _FILES):
            return _from_python_files(folder, scratch)
    archive = root if root.is_file() else root / f"{_FOLDER}.tar.gz"
    if archive.name.startswith(_FOLDER) and archive.is_file():
        return _from_python_files(_extract_files(archive, scratch), scratch)
    return class_folders.find_classes(root, scratch, split)


def _from_python_files(folder: Path, scratch: Path) -> DatasetPictures:
    meta = load_pickled_dict(folder / "meta")
    names = _field(folder / "meta", meta, "fine_label_names", list)
    by_class: PicturesByClass = {as_text(name, folder / "meta"): [] for name in names}
    classes = list(by_class.values())
    for path in (folder / "train", folder / "test"):
        document = load_pickled_dict(path)
        data = _field(path, document, "data", np.ndarray)
        labels = _field(path, document, "fine_labels", list)
        if data.dtype != np.uint8 or data.shape != (len(labels), 3 * _SIDE * _SIDE):
            raise DataError(
                f"{path}: data should be uint8 ({len(labels)}, {3 * _SIDE * _SIDE}), "
                f"one row per label; it is {data.dtype} {data.shape}."
            )
        if not all(isinstance(label, int) and 0 <= label < len(classes) for label in labels):
            raise DataError(f"{path}: labels should be 0 to {len(classes) - 1}.")
        pixels = data.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1)
        for label, picture in zip(labels, store_raw(pixels, path.name, scratch), strict=True):
            classes[label].append(picture)
    return DatasetPictures(by_class)


def _field(path: Path, document: dict[str, Any], name: str, kind: type) -> Any:
    value = document.get(name)
    if not isinstance(value, kind):
        raise DataError(f"{path} should hold {name}; it has {', '.join(sorted(document))}.")
    return value


def _extract_files(archive: Path, scratch: Path) -> Path:
    """Copy the three files of the archive, and nothing else from it, to a folder of scratch."""
    folder = scratch / _FOLDER
    folder.mkdir()
    try:
        with tarfile.open(uncompressed(archive, scratch), "r:") as members:
            for name in _FILES:
                member = members.extractfile(f"{_FOLDER}/{name}")
                if member is None:
                    raise KeyError(name)
                with member, (folder / name).open("wb") as file:
                    shutil.copyfileobj(member, file)
    except (KeyError, tarfile.TarError) as error:
        expected = ", ".join(f"{_FOLDER}/{name}" for name in _FILES)
        raise DataError(f"{archive} should hold {expected}.") from error
    return folder
