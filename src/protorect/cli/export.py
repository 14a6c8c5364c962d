"""Write the labels of a labeling project, or of a folder that `protorect sort` made, for others.

A folder format contains links to the pictures, or copies with --copy. Tables and label-studio also
have the pictures that are unsure or unknown.
"""

import argparse
from pathlib import Path

from protorect.cli.arguments import add_parameters, given
from protorect.cli.output import counted
from protorect.errors import DataError, OptionError
from protorect.labeling.exporting import export_sorted
from protorect.labeling.exports import FORMATS, ExportOptions, check_format
from protorect.labeling.placements import journal_files
from protorect.labeling.project import is_project
from protorect.labeling.session import LabelingSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    formats = "\n".join(f"  {name:13} {what}" for name, what in FORMATS.items())
    parser.epilog = f"formats:\n{formats}"
    add("project", metavar="PROJECT_OR_DIR", type=Path)
    add("--format", required=True, metavar="FORMAT", help="see below")
    add("--out", required=True, type=Path, metavar="F", help="the file or folder to write")
    add("--only", choices=["accepted"], help="only pictures that a person labeled or accepted")
    add("--min-probability", type=float, metavar="P", help="also proposed labels from this on")
    add("--copy", action="store_true", help="copy pictures instead of linking them")
    add_parameters(parser, ExportOptions, "validation", "seed")
    add("--network", metavar="NAME", help="of the classifier of a sorted folder (as in sort)")
    cache = parser.add_mutually_exclusive_group().add_argument
    folder = "cached features (your cache folder)"
    cache("--cache", type=Path, metavar="FOLDER", default=True, help=folder)
    cache("--no-cache", dest="cache", action="store_false", help="use no cached features")


def run(options: argparse.Namespace) -> None:
    """Export, and print what was written."""
    check_format(options.format)
    if options.only and options.min_probability is not None:
        raise OptionError("give --only accepted or --min-probability, not both.")
    include = "checked" if options.only else "all" if options.min_probability is None else "from"
    chosen = given(options, ExportOptions) | {"copy": options.copy, "cache": options.cache}
    if is_project(options.project):
        with LabelingSession.open(options.project, read_only=True, cache=False) as session:
            session.wait()
            exported = session.export(
                options.format,
                options.out,
                include=include,
                min_probability=options.min_probability,
                **chosen,
            )
    elif journal_files(options.project):
        exported = export_sorted(
            options.project,
            options.format,
            options.out,
            include=include,
            minimum=options.min_probability,
            network=options.network,
            options=chosen,
        )
    else:
        raise DataError(
            f"{options.project} is neither a labeling project nor a folder that `protorect sort` "
            "made."
        )
    print(f"{counted(exported.pictures, 'picture', 'pictures')}: {exported.path}")
