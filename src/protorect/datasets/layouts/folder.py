"""Any folder of class folders: `root/cat/a.jpg`, or `root/train/cat/a.jpg` with split folders."""

from __future__ import annotations

from pathlib import Path

from protorect.datasets.layouts import DatasetPictures, PicturesByClass
from protorect.datasets.splits import ClassSplit
from protorect.errors import DataError
from protorect.images.archives import Listing, list_pictures

_SPLIT_FOLDERS = {
    "train": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
}
_HIDDEN = (".", "__MACOSX")


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Take each folder directly in the root as a class, with its pictures at any depth.

    If those folders are called train, val and test, the class folders are inside of them.
    """
    listing = list_pictures(root, scratch)
    tops = {folder.split("/")[0] for folder in listing.folders}
    tops |= {picture.folders[0] for picture in listing.pictures if picture.folders}
    tops = {top for top in tops if not top.startswith(_HIDDEN)}
    if len(tops) > 1 and tops <= set(_SPLIT_FOLDERS) and split is None:
        return _from_split_folders(listing)
    return _group(listing, depth=1)


def _from_split_folders(listing: Listing) -> DatasetPictures:
    found = _group(listing, depth=2)
    split: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    by_class: PicturesByClass = {}
    for path, pictures in found.by_class.items():
        folder, name = path.split("/")
        if name in by_class:
            raise DataError(
                f"class {name} is in {folder} and in another split; in few-shot learning a class "
                "belongs to one. Put the class folders side by side and use --split."
            )
        by_class[name] = pictures
        split[_SPLIT_FOLDERS[folder]].append(name)
    return DatasetPictures(
        by_class, found.unused, ClassSplit(**{name: tuple(split[name]) for name in split})
    )


def _group(listing: Listing, depth: int) -> DatasetPictures:
    """Group pictures by the first `depth` folders of their path."""
    by_class: PicturesByClass = {
        folder: []
        for folder in listing.folders
        if folder.count("/") == depth - 1 and not folder.startswith(_HIDDEN)
    }
    unused = list(listing.other_files)
    for picture in listing.pictures:
        if len(picture.folders) < depth:
            unused.append(picture.path)
        else:
            by_class.setdefault("/".join(picture.folders[:depth]), []).append(picture)
    return DatasetPictures(by_class, tuple(unused))
