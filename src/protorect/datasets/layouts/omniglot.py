"""Omniglot: `images_background` and `images_evaluation`, as folders or as the official zips."""

from dataclasses import replace
from pathlib import Path

from protorect.datasets.layouts import DatasetPictures, PicturesByClass, describe_contents
from protorect.datasets.splits import ClassSplit
from protorect.errors import DataError
from protorect.images.archives import list_pictures

_PARTS = ("images_background", "images_evaluation")


def find_classes(root: Path, scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Take each character of an alphabet as a class: `Tifinagh/character55`."""
    by_class: PicturesByClass = {}
    unused: list[str] = []
    for part in (_find_part(root, name) for name in _PARTS):
        listing = list_pictures(part, scratch)
        unused += [f"{part.name}/{path}" for path in listing.other_files]
        for picture in listing.pictures:
            named = replace(picture, path=f"{part.name}/{picture.path}")
            if len(picture.folders) < 2:
                unused.append(named.path)
            else:
                by_class.setdefault("/".join(picture.folders[-2:]), []).append(named)
    return DatasetPictures(by_class, tuple(unused))


def _find_part(root: Path, part: str) -> Path:
    for path in (root / part, root / f"{part}.zip"):
        if path.exists():
            return path
    raise DataError(
        f"{root} is not Omniglot: expected {' and '.join(_PARTS)} in it, as folders or as .zip "
        f"files; found {describe_contents(root)}."
    )
