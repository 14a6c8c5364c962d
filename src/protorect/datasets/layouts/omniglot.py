"""Omniglot: `images_background` and `images_evaluation`, as folders or as the official zips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from protorect.datasets.layouts.found import Found, Pictures, describe
from protorect.datasets.splits import ClassSplit
from protorect.errors import DataError
from protorect.images.archives import list_pictures

_PARTS = ("images_background", "images_evaluation")


def find_omniglot(root: Path, scratch: Path, split: ClassSplit | None) -> Found:
    """A class is an alphabet and a character in it: `Tifinagh/character55`."""
    pictures: Pictures = {}
    left_out: list[str] = []
    for part in _PARTS:
        place = _place(root, part)
        listing = list_pictures(place, scratch)
        left_out += [f"{place.name}/{name}" for name in listing.other_files]
        for picture in listing.pictures:
            named = replace(picture, path=f"{place.name}/{picture.path}")
            if len(picture.folders) < 2:
                left_out.append(named.path)
            else:
                pictures.setdefault("/".join(picture.folders[-2:]), []).append(named)
    return Found(pictures, tuple(left_out))


def _place(root: Path, part: str) -> Path:
    for place in (root / part, root / f"{part}.zip"):
        if place.exists():
            return place
    raise DataError(
        f"{root} is not Omniglot: expected {' and '.join(_PARTS)} in it, as folders or as .zip "
        f"files; found {describe(root)}."
    )
