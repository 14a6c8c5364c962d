"""Folders sorted by earlier versions, which had their own files beside the pictures."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from protorect._utils.documents import read_json
from protorect._utils.files import names_in, sha256_of_file
from protorect.errors import DataError
from protorect.labeling.placements import FOLDER, OWN, is_journal

FOLDERS = JOURNAL, THUMBNAILS = ("journal", "_thumbnails")
_DIGESTS = "outputs.json"  # in the journal's folder, the SHA-256 of each output as written


def is_found(root: Path) -> bool:
    """Whether a folder has this layout."""
    return any(map(is_journal, names_in(root / JOURNAL)))


def convert(root: Path, written: Path) -> None:
    """Move journal and thumbnails of a sorted folder into its subfolder, the journal last.

    Outputs that were not edited are copied into the folder `written`.
    """
    if not is_found(root) or (root / FOLDER).exists():
        return
    digests: dict[str, str] = {}
    with suppress(DataError):  # without digests, all outputs count as edited
        digests = read_json(root / JOURNAL / _DIGESTS, {str: str})
    for name, digest in digests.items():
        path = root / name
        if path.parent == root and path.is_file() and sha256_of_file(path) == digest:
            written.mkdir(exist_ok=True)
            shutil.copyfile(path, written / name)
    thumbnails = root / THUMBNAILS
    if thumbnails.is_dir() and not thumbnails.is_symlink():
        os.rename(thumbnails, root / OWN / "thumbnails")
    os.rename(root / JOURNAL, root / FOLDER)
