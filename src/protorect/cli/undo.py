"""Undo every `protorect sort` into DIR: put back the pictures that --move moved there.

Links, copies and what else was made there are removed, pictures that you moved to another folder of
DIR included. A copy or a table that you have changed stays, and so does a copy whose original is
gone or changed. If it is interrupted, give the same command again.

Pictures are moved back only if you sorted them on this computer, as the journal in a folder that
comes from somebody else may name any place, and only if they were not changed since. With --trust
they are moved all the same.
"""

import argparse
from pathlib import Path

from protorect.cli.output import counted, print_list
from protorect.cli.progress import progress_bar
from protorect.errors import DataError
from protorect.sorting.folder import open_folder, was_sorted_into


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument(
        "--trust", action="store_true", help="also what others sorted, or what was changed"
    )


def run(options: argparse.Namespace) -> int:
    """Undo; 1 if some files had to be left."""
    if not was_sorted_into(options.folder):
        raise DataError(f"{options.folder} has no journal of `protorect sort`; nothing to undo.")
    with open_folder(options.folder) as folder, progress_bar("pictures") as progress:
        pictures = len(folder.placements)
        problems = folder.undo(progress, options.trust)
    print_list("left as they are", [f"{path}: {reason}" for path, reason in problems])
    if not problems:
        print(f"{counted(pictures, 'picture', 'pictures')} restored")
    return 1 if problems else 0
