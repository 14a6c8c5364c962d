"""CUB-200-2011: `CUB_200_2011/images/001.Black_footed_Albatross/*.jpg`, as folder or tar."""

from __future__ import annotations

from pathlib import Path

from protorect.datasets.layouts.class_folders import by_name
from protorect.datasets.layouts.found import Found
from protorect.datasets.splits import ClassSplit
from protorect.errors import OptionError
from protorect.images.archives import list_pictures
from protorect.images.stored import StoredPicture


def find_cub(root: Path, scratch: Path, split: ClassSplit | None) -> Found:
    """Class folders under `images`, or directly under the root."""
    if split is None:
        raise OptionError("CUB is divided by its published split or by --split FILE.json.")
    return by_name(list_pictures(root, scratch), split, _class_folder)


def _class_folder(picture: StoredPicture) -> str | None:
    # The segmentations that come with CUB are in class folders of the same names.
    above = picture.folders[-2:-1]
    return picture.folders[-1] if above in ((), ("images",)) else None
