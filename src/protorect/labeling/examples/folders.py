"""A folder of class folders."""

import os
from pathlib import Path

from protorect._utils.text import printable
from protorect.errors import DataError
from protorect.images.archives import Listing, list_pictures
from protorect.images.formats import is_hidden
from protorect.images.stored import StoredPicture
from protorect.labeling.examples.found import Example, Found
from protorect.labeling.prediction import UNKNOWN, UNSURE

_NO_CLASSES = ("_thumbnails", "journal", UNSURE)  # of a folder that was sorted into


def recognizes(path: str, head: bytes) -> bool:
    """Whether it is any folder."""
    return os.path.isdir(path)


def read(path: str, nested: bool) -> Found:
    """The pictures of every class folder; `nested`: of the folders in it, too."""
    root = Path(path)
    listing = list_pictures(root, scratch=root)  # scratch is for archives only
    skipped = _NO_CLASSES if _was_sorted(listing) else _NO_CLASSES[:1]
    pictures = [one for one in listing.pictures if one.folders[:1] not in [(n,) for n in skipped]]
    _check_depth(root, pictures, nested)
    examples = [
        Example(StoredPicture.from_file(one.file, one.path), one.folders[0]) for one in pictures
    ]
    names = {one for one in listing.folders if "/" not in one and not is_hidden(one)}
    empty = names - {example.label for example in examples} - {*skipped, UNKNOWN}
    return Found(examples, tuple(sorted(empty)))


def _was_sorted(listing: Listing) -> bool:
    """Whether `protorect sort` made the folder, of which the journal may be gone."""
    return bool({UNKNOWN, UNSURE, "_thumbnails"} & set(listing.folders)) or (
        "predictions.csv" in listing.other_files
    )


def _check_depth(root: Path, pictures: list[StoredPicture], nested: bool) -> None:
    """Raise DataError if a picture is not directly in the folder of its class."""
    for one in pictures:
        if not one.folders and one.error and os.path.isdir(one.file):
            raise DataError(f"cannot use the class folder {printable(one.file)}: {one.error}.")
        if not one.folders:
            raise DataError(
                f"{one.path} lies in {printable(str(root))} itself, in no class; put every example "
                "into the folder of its class."
            )
        if len(one.folders) > 1 and not nested:
            raise DataError(
                f"{one.path} lies in a folder within the folder {one.folders[0]} of "
                f"{printable(str(root))}; put it directly into the folder of its class, or give "
                f"--nested to take it for an example of {one.folders[0]}."
            )
