"""A folder of a hundred photographs, sorted from three examples per class as `sort` does it.

`benchmarks/demo_data.py` chose them from the Grocery Store data set, by a rule, not by results.
"""

import zipfile
from importlib.resources import as_file, files
from pathlib import Path

from protorect._utils.files import atomic_write, read_bytes
from protorect._utils.progress import ProgressOf
from protorect._utils.text import printable
from protorect.errors import DataError
from protorect.sorting.sort import SortOptions, SortResult, sort_into

EXAMPLES, PICTURES, SORTED = "examples", "pictures", "sorted"


def sort_photographs(folder: Path, progress_of: ProgressOf) -> SortResult:
    """Write the photographs into a folder and sort them there into `sorted`.

    The class folders of the pictures are their true labels; they are used only to measure.
    """
    write_photographs(folder)
    options = SortOptions(mode="copy", evaluate=True, progress_of=progress_of)
    return sort_into(folder / PICTURES, folder / EXAMPLES, folder / SORTED, options, cache=False)


def write_photographs(folder: Path) -> None:
    """Write those that are missing; DataError, and nothing written, if another file is there."""
    archive = files("protorect.demo").joinpath("data", "groceries.zip")
    with as_file(archive) as path, zipfile.ZipFile(path) as photographs:
        contents = {folder / name: photographs.read(name) for name in photographs.namelist()}
    missing = {}
    for path, content in contents.items():
        if not path.exists():
            missing[path] = content
        elif read_bytes(path) != content:
            raise DataError(
                f"{printable(path)} is not the demonstration's; remove {printable(folder)} or give "
                "another --out."
            )
    for path, content in missing.items():
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)
