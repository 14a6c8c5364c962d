"""Bounding boxes of the birds of CUB-200-2011, to which its pictures are cropped.

`images.txt` has a line `ID PATH` per picture, `bounding_boxes.txt` a line `ID X Y WIDTH HEIGHT` in
pixels of that picture.
"""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

from protorect._utils.parallel import processors, threads
from protorect._utils.text import printable
from protorect.datasets.layouts import DatasetPictures
from protorect.errors import DataError
from protorect.images.decode import image_size
from protorect.images.stored import Box, StoredPicture, UnreadableError

IMAGES, BOXES = "images.txt", "bounding_boxes.txt"
AUTO, CROPS = "auto", ("boxes", "none")
BEFORE = "before"  # cut or resized by whoever made the archive
_INSIDE = 0.5  # part of a box that must be in its picture; 30 of the official ones reach beyond
_MANY = 1000  # pictures of one size: the original ones have hundreds of sizes
_WHOLE = "give --crop none to pack the pictures whole"


def crop_to_boxes(found: DatasetPictures, root: Path, crop: str, default: str) -> DatasetPictures:
    """Give each picture its box, clipped at the border of the picture.

    `crop` is "boxes", "none", or "auto" for the default of the data set, which applies boxes only
    if they are there. That of the result says what was done: "boxes", "none", or "before" if the
    boxes cannot be of these pictures, which all have one size: they were cut or resized before.
    """
    if (default if crop == AUTO else crop) == "none":
        return replace(found, crop="none")
    outermost_last = sorted(found.texts, key=lambda text: text.path.count("/"), reverse=True)
    files = {text.path.split("/")[-1]: text for text in outermost_last}
    if BOXES not in files and crop == AUTO:
        remark = f"there is no {BOXES}, so the pictures are packed whole, as with --crop none."
        return replace(found, crop="none", remarks=(*found.remarks, remark))
    for name in (BOXES, IMAGES):
        if name not in files:
            raise DataError(
                f"{printable(root)} has no {name}, which says where the birds are; add it, or "
                f"{_WHOLE}."
            )
    boxes = _boxes_by_path(files[IMAGES], files[BOXES])
    pictures = [picture for of_class in found.by_class.values() for picture in of_class]
    _check_same_pictures({_key(picture) for picture in pictures}, set(boxes))
    with threads(processors()) as map_threads:
        sizes = dict(zip(map(_key, pictures), map_threads(_size, pictures), strict=True))
    outside = [key for key, size in sizes.items() if size and _inside(boxes[key], size) < _INSIDE]
    if _resized_before(list(sizes.values()), len(outside)):
        (width, height), *_ = filter(None, sizes.values())
        remark = (
            f"all pictures have {width} x {height} pixels, and {len(outside)} of {len(sizes)} "
            f"boxes in {BOXES} do not fit them: the boxes are of the original pictures, and these "
            "were cut or resized before. They are packed as they are."
        )
        return replace(found, crop=BEFORE, remarks=(*found.remarks, remark))
    if outside:
        raise _not_in_picture(outside, boxes, sizes)
    clipped = {key: _clip(boxes[key], size) for key, size in sizes.items()}
    count = sum(clipped[key] != boxes[key] for key in clipped if sizes[key])
    remark = f"{count} boxes reach beyond their picture and were clipped at its border."
    by_class = {
        name: [replace(picture, box=clipped[_key(picture)]) for picture in of_class]
        for name, of_class in found.by_class.items()
    }
    remarks = (*found.remarks, remark) if count else found.remarks
    return replace(found, by_class=by_class, crop="boxes", remarks=remarks)


def _key(picture: StoredPicture) -> str:
    """The path of a picture as in images.txt: its class folder and its name."""
    return "/".join(picture.path.split("/")[-2:])


def _boxes_by_path(images: StoredPicture, boxes: StoredPicture) -> dict[str, Box]:
    paths = {one: path for one, (path,) in _numbered_lines(images, 1).items()}
    if len(set(paths.values())) < len(paths):
        [(path, _)] = Counter(paths.values()).most_common(1)
        raise DataError(f"{IMAGES} has {path} twice; give every picture one line.")
    numbers = _numbered_lines(boxes, 4)
    if numbers.keys() != paths.keys():
        one = min(numbers.keys() ^ paths.keys(), key=lambda key: (len(key), key))
        here, there = (BOXES, IMAGES) if one in numbers else (IMAGES, BOXES)
        raise DataError(
            f"{here} has a picture {one} and {there} has not; give two files that belong together, "
            f"or {_WHOLE}."
        )
    return {paths[one]: _box(paths[one], values) for one, values in numbers.items()}


def _numbered_lines(file: StoredPicture, fields: int) -> dict[str, list[str]]:
    """The fields of every line by its number, which comes first."""
    try:
        text = file.read().decode("utf-8-sig")
    except (UnreadableError, UnicodeDecodeError) as error:
        raise DataError(f"{file.path} cannot be read ({error}); {_WHOLE}.") from error
    lines: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        one, *values = line.split()
        if len(values) != fields or not one.isdecimal() or one in lines:
            shape = "ID PATH" if fields == 1 else "ID X Y WIDTH HEIGHT"
            raise DataError(
                f"{file.path}, line {number}: {printable(line[:80])!r} should be {shape}, each ID "
                f"a number that is there once; {_WHOLE}."
            )
        lines[one] = values
    return lines


def _box(path: str, values: list[str]) -> Box:
    try:
        x, y, width, height = (float(value) for value in values)
    except ValueError:
        x = y = width = height = math.nan
    right, bottom = x + width, y + height
    # Beside a very large number a small one is lost, so that a box may be empty.
    if not (all(map(math.isfinite, (x, y, right, bottom))) and x < right and y < bottom):
        raise DataError(
            f"{BOXES}: the box of {path}, {' '.join(values)}, should be four numbers, X Y WIDTH "
            f"HEIGHT, with a size above zero; correct it, or {_WHOLE}."
        )
    return x, y, right, bottom


def _check_same_pictures(found: set[str], listed: set[str]) -> None:
    """Raise DataError unless images.txt lists the pictures in the class folders that are used."""
    folders = {key.split("/")[0] for key in found}
    listed = {key for key in listed if key.split("/")[0] in folders}
    if found - listed:
        problem = f"{min(found - listed)} is not in {IMAGES} and has no box"
    elif listed - found:
        problem = f"{IMAGES} has {min(listed - found)}, which is not there"
    else:
        return
    count = len(found ^ listed)
    more = f" ({count - 1} more differ)" if count > 1 else ""
    raise DataError(f"{problem}{more}; give the files of these pictures, or {_WHOLE}.")


def _size(picture: StoredPicture) -> tuple[int, int] | None:
    """Width and height; None if it cannot be read, which packing reports."""
    try:
        return image_size(picture.read())
    except UnreadableError:
        return None


def _inside(box: Box, size: tuple[int, int]) -> float:
    """The part of a box that is in its picture."""
    left, top, right, bottom = _clip(box, size)
    # Two ratios: the area of a tiny box would be 0.
    wide = max(0.0, right - left) / (box[2] - box[0])
    return wide * max(0.0, bottom - top) / (box[3] - box[1])


def _clip(box: Box, size: tuple[int, int] | None) -> Box:
    width, height = size or (math.inf, math.inf)
    left, top, right, bottom = box
    return max(0.0, left), max(0.0, top), min(right, width), min(bottom, height)


def _resized_before(sizes: list[tuple[int, int] | None], outside: int) -> bool:
    """Whether the pictures cannot be the original ones, to which the boxes belong."""
    known = [size for size in sizes if size]
    return len(set(known)) == 1 and (2 * outside > len(known) or len(known) >= _MANY)


def _not_in_picture(
    outside: list[str], boxes: dict[str, Box], sizes: dict[str, tuple[int, int] | None]
) -> DataError:
    key, *others = outside
    left, top, right, bottom = boxes[key]
    width, height = sizes[key] or (0, 0)
    more = f" (as are {len(others)} more)" if others else ""
    return DataError(
        f"{BOXES}: the box of {key}, {left:g} {top:g} {right - left:g} {bottom - top:g}, is mostly "
        f"outside of its picture of {width} x {height} pixels{more}; give the boxes of these "
        f"pictures, or {_WHOLE}."
    )
