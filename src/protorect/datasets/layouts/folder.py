"""Any folder of class folders: `root/cat/a.jpg`, or `root/train/cat/a.jpg` with split folders."""

from pathlib import Path

from protorect.datasets.layouts import DatasetPictures, PicturesByClass, group_by_class
from protorect.datasets.splits import SPLITS, ClassSplit
from protorect.errors import DataError
from protorect.images.archives import Listing, list_pictures
from protorect.images.formats import is_hidden
from protorect.images.stored import StoredPicture

_SPLIT_FOLDERS = {name: name for name in SPLITS} | {"valid": "val", "validation": "val"}


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Take each folder directly in the root as a class, with its pictures at any depth.

    If all of those are split folders (train, val, test), the class folders are inside them.
    """
    listing = list_pictures(root, scratch)
    tops = {folder.split("/")[0] for folder in listing.folders}
    tops |= {picture.folders[0] for picture in listing.pictures if picture.folders}
    tops = {top for top in tops if not is_hidden(top)}
    if len(tops) > 1 and tops <= set(_SPLIT_FOLDERS) and split is None:
        return _from_split_folders(listing)
    return _group(listing, depth=1)


def _from_split_folders(listing: Listing) -> DatasetPictures:
    found = _group(listing, depth=2)
    split: dict[str, tuple[str, ...]] = dict.fromkeys(SPLITS, ())
    by_class: PicturesByClass = {}
    for path, pictures in found.by_class.items():
        folder, name = path.split("/")
        if name in by_class:
            raise DataError(
                f"class {name} is in {folder} and in another split; in few-shot learning a class "
                "belongs to one split only. Put the class folders side by side and use --split."
            )
        by_class[name] = pictures
        split[_SPLIT_FOLDERS[folder]] += (name,)
    return DatasetPictures(by_class, found.unused, ClassSplit(**split))


def _group(listing: Listing, depth: int) -> DatasetPictures:
    """Take each folder at this depth as a class; folders directly in the root have depth 1."""
    classes = [
        folder
        for folder in listing.folders
        if folder.count("/") == depth - 1 and not is_hidden(folder)
    ]

    def class_of(picture: StoredPicture) -> str | None:
        return "/".join(picture.folders[:depth]) if len(picture.folders) >= depth else None

    return group_by_class(listing, classes, class_of)
