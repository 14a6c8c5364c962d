"""CUB-200-2011: `CUB_200_2011/images/001.Black_footed_Albatross/*.jpg`, as folder or tar."""

from dataclasses import replace
from pathlib import Path

from protorect.datasets.layouts import DatasetPictures, class_folders
from protorect.datasets.splits import ClassSplit
from protorect.images.archives import list_pictures


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find the class folders in `images`, or directly in the root, and the lists beside them."""
    listing = list_pictures(root, scratch)
    # CUB's segmentations are in class folders of the same names.
    found = class_folders.group(listing, split, parents=("images", ""))
    return replace(found, texts=listing.texts)
