"""CIFAR-FS: class folders, or the original python files of CIFAR-100."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from protorect.datasets.layouts.class_folders import find_class_folders
from protorect.datasets.layouts.found import Found, Pictures
from protorect.datasets.layouts.raw import store_raw, text
from protorect.datasets.pickles import load_plain_pickle
from protorect.datasets.splits import ClassSplit
from protorect.errors import DataError
from protorect.images.archives import uncompressed

_FOLDER = "cifar-100-python"
_FILES = ("meta", "train", "test")
_SIDE = 32


def find_cifar_fs(root: Path, scratch: Path, split: ClassSplit | None) -> Found:
    """`cifar-100-python` with meta, train and test, its tar.gz, or class folders."""
    archive = root if root.is_file() else root / f"{_FOLDER}.tar.gz"
    for folder in (root, root / _FOLDER):
        if all((folder / name).is_file() for name in _FILES):
            return _from_python_files(folder, scratch)
    if archive.name.startswith(_FOLDER) and archive.is_file():
        return _from_python_files(_taken_out(archive, scratch), scratch)
    return find_class_folders(root, scratch, split)


def _from_python_files(folder: Path, scratch: Path) -> Found:
    names = _field(folder / "meta", _load(folder / "meta"), "fine_label_names", list)
    pictures: Pictures = {text(name): [] for name in names}
    classes = list(pictures)
    for name in ("train", "test"):
        document = _load(folder / name)
        data = _field(folder / name, document, "data", np.ndarray)
        labels = _field(folder / name, document, "fine_labels", list)
        if data.dtype != np.uint8 or data.shape != (len(labels), 3 * _SIDE * _SIDE):
            raise DataError(
                f"{folder / name}: data should be uint8 ({len(labels)}, {3 * _SIDE * _SIDE}), "
                f"one row a label; it is {data.dtype} {data.shape}."
            )
        if not all(isinstance(label, int) and 0 <= label < len(classes) for label in labels):
            raise DataError(f"{folder / name}: labels should be 0 to {len(classes) - 1}.")
        pixels = data.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1)
        stored = store_raw(pixels, name, scratch)
        for label, picture in zip(labels, stored, strict=True):
            pictures[classes[label]].append(picture)
    return Found(pictures)


def _load(path: Path) -> dict[str, Any]:
    document = load_plain_pickle(path)
    if not isinstance(document, Mapping):
        raise DataError(f"{path} should hold a dict; it holds a {type(document).__name__}.")
    return {text(key): value for key, value in document.items()}


def _field(path: Path, document: dict[str, Any], name: str, kind: type) -> Any:
    value = document.get(name)
    if not isinstance(value, kind):
        raise DataError(f"{path} should hold {name}; it has {', '.join(sorted(document))}.")
    return value


def _taken_out(archive: Path, scratch: Path) -> Path:
    """The three files of the archive, and nothing else from it, in a folder of scratch."""
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
        wanted = ", ".join(f"{_FOLDER}/{name}" for name in _FILES)
        raise DataError(f"{archive} should hold {wanted}.") from error
    return folder
