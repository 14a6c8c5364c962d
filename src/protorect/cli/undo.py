"""`protorect undo`: everything that `protorect sort` did to a folder taken back."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from protorect.errors import DataError

DESCRIPTION = """\
Put back every picture that `protorect sort --move` moved into DIR, remove its links and copies, and
what else was made there. A copy or a table that you have changed stays. Interrupted, give the same
command again.
"""


def add_to(verbs: Any) -> None:
    """Add this verb to the parser."""
    parser = verbs.add_parser(
        "undo",
        help="take back what `protorect sort` did",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Undo; 1 if something had to be left."""
    from protorect.cli.output import listed
    from protorect.cli.progress import progress_bar
    from protorect.sorting.folder import SortedFolder
    from protorect.sorting.journal import FOLDER

    if not (options.folder / FOLDER).is_dir():
        raise DataError(f"{options.folder} has no journal of `protorect sort`; nothing to undo.")
    folder = SortedFolder.open(options.folder)
    with progress_bar("pictures") as progress:
        problems = folder.undo(progress)
    listed("left as they are", [f"{path}: {reason}" for path, reason in problems])
    if not problems:
        print(f"{len(folder.entries)} pictures are as they were")
    return 1 if problems else 0
