"""CUB-200-2011: `CUB_200_2011/images/001.Black_footed_Albatross/*.jpg`, as folder or tar."""

from pathlib import Path

from protorect.datasets.layouts import DatasetPictures, class_folders
from protorect.datasets.splits import ClassSplit


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find the class folders in `images`, or directly in the root."""
    # CUB's segmentations are in class folders of the same names.
    return class_folders.find_classes(root, scratch, split, parents=("images", ""))
