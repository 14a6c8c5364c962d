"""Index and pack a data set: one memory-mapped array of pictures per split.

Every picture is hashed, decoded, rotated upright, cropped to its central square or its bounding
box, and resized.

DATASET is one of those that `protorect datasets` lists; `folder` is any folder of class folders.
ROOT is the folder or archive as it was downloaded.
"""

import argparse
import sys
from pathlib import Path

from protorect.cli.arguments import add_parameters, given
from protorect.cli.output import counted, print_list
from protorect.cli.progress import progress_bar
from protorect.datasets.prepare import PackingOptions, prepare
from protorect.datasets.splits import parse_fractions, split_from_file

_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("dataset", metavar="DATASET")
    add("root", metavar="ROOT", type=Path)
    add("--out", type=Path, required=True, metavar="PACKED", help="the folder to create")
    add(
        "--split",
        metavar="0.64,0.16,0.2 | FILE.json",
        help="fractions of the classes for train, val and test, or a file with their names",
    )
    add_parameters(parser, PackingOptions, "size", "crop", "seed", "workers")


def run(options: argparse.Namespace) -> None:
    """Prepare the data set, then print what was packed and what was not."""
    split = options.split
    if split is not None:
        split = split_from_file(Path(split)) if split.endswith(".json") else parse_fractions(split)
    with progress_bar("pictures") as progress:
        packed = prepare(
            options.dataset,
            options.root,
            options.out,
            split=split,
            **given(options, PackingOptions),
            progress=progress,
        )
    for name, record in packed.manifest["splits"].items():
        pictures = counted(record["images"], "picture", "pictures")
        classes = counted(len(record["class_names"]), "class", "classes")
        print(f"{name}: {pictures} of {classes}")
    unreadable = [f"{file['path']}: {file['reason']}" for file in packed.manifest["unreadable"]]
    unused = packed.manifest["left_out"]
    for remark in packed.manifest["remarks"][:_SHOWN]:
        print(remark, file=sys.stderr)
    print_list("could not be read", unreadable, _SHOWN, "all in manifest.json")
    print_list("not packed: not a picture of a class", unused, _SHOWN, "all in manifest.json")
    print(packed.path)
