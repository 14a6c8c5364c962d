"""CUB-200-2011: `CUB_200_2011/images/001.Black_footed_Albatross/*.jpg`, as folder or tar."""

from __future__ import annotations

from pathlib import Path

from protorect.datasets.layouts import DatasetPictures
from protorect.datasets.layouts.class_folders import group_by_class
from protorect.datasets.splits import ClassSplit
from protorect.images.archives import list_pictures
from protorect.images.stored import StoredPicture


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find the class folders in `images`, or directly in the root."""
    return group_by_class(list_pictures(root, scratch), split, _class_folder)


def _class_folder(picture: StoredPicture) -> str | None:
    # CUB's segmentations are in class folders of the same names.
    parent = picture.folders[-2:-1]
    return picture.folders[-1] if parent in ((), ("images",)) else None
