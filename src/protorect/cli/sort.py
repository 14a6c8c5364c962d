"""`protorect sort`: a pile of pictures into class folders, from a few examples."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protorect.uncertainty.thresholds import DEFAULT_THRESHOLDS, Thresholds

if TYPE_CHECKING:
    from protorect.sorting.folder import SortedFolder
    from protorect.sorting.sort import Sorted, Sorter

MOST_NAMED = 5
DESCRIPTION = """\
Sort pictures into class folders, from a few examples of each class.

PICTURES is a folder (with all below it), a pattern in quotes, a text file with a picture on every
line, or several pictures. EXAMPLES is a folder of class folders, or a CSV file with path and label.

DIR gets a folder a class, _unknown for pictures of none of the classes, _unsure for doubtful ones,
predictions.csv, and index.html to look through it all. Pictures are linked there; they are only
moved with --move, and `protorect undo DIR` puts everything back. Interrupted, give the same command
again.

networks:
  efficientnet-lite0   trained on ImageNet, for photographs; comes with protorect
  RUN                  the folder of a run of `protorect train`, or a .safetensors file of weights
  onnx:PATH            an ONNX file; onnx:PATH:mean=0.5,std=0.5 where it does not want ImageNet's
  hf:NAME              a vision model of Hugging Face
"""


def add_to(verbs: Any) -> None:
    """Add this verb to the parser."""
    parser = verbs.add_parser(
        "sort",
        help="sort pictures into class folders, from a few examples",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("pictures", metavar="PICTURES", nargs="+")
    add("--examples", required=True, metavar="EXAMPLES", help="labelled pictures")
    add("--out", required=True, type=Path, metavar="DIR", help="where they are sorted to")
    how = parser.add_mutually_exclusive_group()
    for mode, does in (
        ("link", "link the pictures in DIR (the default)"),
        ("copy", "copy them"),
        ("move", "move them; the journal in DIR knows where they were"),
    ):
        how.add_argument(
            f"--{mode}", dest="mode", action="store_const", const=mode, default="link", help=does
        )
    add("--network", default="efficientnet-lite0", metavar="NAME", help="see below (%(default)s)")
    add("--method", metavar="NAME", help="as in `protorect evaluate` (one that suits the pile)")
    add(
        "--unknown",
        type=float,
        metavar="SHARE",
        default=DEFAULT_THRESHOLDS.unknown,
        help="set aside what is less like its class than this share of it (%(default)s; 0: never)",
    )
    add(
        "--unsure",
        type=float,
        metavar="P",
        default=DEFAULT_THRESHOLDS.unsure,
        help="set aside labels of less probability (%(default)s; 0: never)",
    )
    add("--csv", type=Path, metavar="F.csv", help="write the predictions here, too")
    add("--parquet", action="store_true", help="write DIR/predictions.parquet, too")
    add("--no-sheet", dest="sheet", action="store_false", help="make no contact sheet")
    add(
        "--eval",
        action="store_true",
        help="the pictures' folders are their true labels: say how right the labels are",
    )
    add("--watch", action="store_true", help="go on sorting what arrives, until Ctrl-C")
    cache = parser.add_mutually_exclusive_group()
    cache.add_argument(
        "--cache", type=Path, metavar="FOLDER", help="keep features here (your cache folder)"
    )
    cache.add_argument("--no-cache", action="store_true", help="keep no features")
    add(
        "--precision",
        default="auto",
        choices=("auto", "bfloat16", "float32"),
        help="of the network",
    )
    add("--device", default="cpu", help="where to compute, as torch names it (%(default)s)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Sort, and print what became of the pictures; 1 if some could not be read or placed."""
    from protorect._utils.files import write_text
    from protorect.cli.output import check_outputs
    from protorect.cli.progress import progress_bar
    from protorect.sorting.sort import SortOptions, sort_into

    check_outputs([options.csv])
    chosen = SortOptions(
        mode=options.mode,
        thresholds=Thresholds(options.unknown, options.unsure),
        sheet=options.sheet,
        parquet=options.parquet,
        truth=options.eval,
    )
    sorter, done = sort_into(
        options.pictures,
        options.examples,
        options.out,
        chosen,
        progress_bar,
        may_be_empty=options.watch,
        source=options.network,
        method=options.method,
        cache=options.cache or not options.no_cache,
        precision=options.precision,
        device=options.device,
    )
    _tell(done, options.out)
    if options.csv is not None and done.folder.batches:
        write_text(options.csv, (options.out / "predictions.csv").read_text(encoding="utf-8"))
    failed = bool(done.problems)
    if options.watch:
        failed |= _watch(sorter, options.pictures, done.folder)
    return 1 if failed else 0


def _watch(sorter: Sorter, pictures: list[str], folder: SortedFolder) -> bool:
    """Tell of every batch until Ctrl-C; whether something could not be used."""
    from protorect.cli.output import listed
    from protorect.sorting.watch import watch

    failed = False
    print("watching; end with Ctrl-C", flush=True)
    try:
        for done in watch(sorter, pictures, folder):
            for entry in done.folder.batches[-1].entries:
                row = entry.prediction
                print(f"{row.probability:5.0%} {row.folder}: {row.path}", flush=True)
            listed("could not be used", [f"{path}: {reason}" for path, reason in done.problems])
            failed |= bool(done.problems)
    except KeyboardInterrupt:
        return failed
    return failed


def _tell(done: Sorted, out: Path) -> None:
    from protorect.cli.output import listed

    notes = [
        (done.finished, "left by an interruption, now in their place"),
        (done.others, "other files left alone"),
        (len(done.examples), "already among the examples, labelled as such"),
    ]
    for count, what in notes:
        if count:
            print(f"{count} {what}")
    counts = Counter(entry.prediction.folder for entry in done.folder.entries)
    for folder, count in sorted(
        counts.items(), key=lambda item: (item[0].startswith("_"), item[0])
    ):
        print(f"{count:7} {folder}")
    if done.assessment is not None:
        print("\n".join(done.assessment.summary()))
        for true, label, pictures in done.assessment.confused:
            print(f"{len(pictures):7} {true} taken for {label}")
    print(out / "index.html" if (out / "index.html").exists() else out)
    told = [f"{path}: {reason}" for path, reason in done.problems]
    listed("could not be used", told, MOST_NAMED, f"in {out / 'errors.csv'}")
