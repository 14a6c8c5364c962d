"""Any folder of class folders: `root/cat/a.jpg`, or `root/train/cat/a.jpg` and so on."""

from __future__ import annotations

from pathlib import Path

from protorect.datasets.layouts.found import Found, Pictures
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


def find_folder(root: Path, scratch: Path, split: ClassSplit | None) -> Found:
    """Each folder directly under the root is a class, with its pictures at any depth.

    If those folders are called train, val and test, the classes are one step down.
    """
    listing = list_pictures(root, scratch)
    tops = {folder.split("/")[0] for folder in listing.folders}
    tops |= {picture.folders[0] for picture in listing.pictures if picture.folders}
    tops = {top for top in tops if not top.startswith((".", "__MACOSX"))}
    if len(tops) > 1 and tops <= set(_SPLIT_FOLDERS) and split is None:
        return _divided(listing)
    pictures, left_out = _classes(listing, depth=1)
    return Found(pictures, left_out)


def _divided(listing: Listing) -> Found:
    pictures, left_out = _classes(listing, depth=2)
    lists: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    classes: Pictures = {}
    for path, of_class in pictures.items():
        folder, name = path.split("/")
        if name in classes:
            raise DataError(
                f"class {name} is in {folder} and in another split; in few-shot learning a class "
                "belongs to one. Put the class folders side by side and use --split."
            )
        classes[name] = of_class
        lists[_SPLIT_FOLDERS[folder]].append(name)
    split = ClassSplit(**{name: tuple(names) for name, names in lists.items()})
    return Found(classes, left_out, split)


def _classes(listing: Listing, depth: int) -> tuple[Pictures, tuple[str, ...]]:
    """Pictures by the first `depth` folders of their path."""
    pictures: Pictures = {
        folder: []
        for folder in listing.folders
        if folder.count("/") == depth - 1 and not folder.startswith((".", "__MACOSX"))
    }
    left_out = list(listing.other_files)
    for picture in listing.pictures:
        if len(picture.folders) < depth:
            left_out.append(picture.path)
        else:
            pictures.setdefault("/".join(picture.folders[:depth]), []).append(picture)
    return pictures, tuple(left_out)
