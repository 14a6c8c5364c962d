"""Sort pictures into class folders, from a few examples of each class.

PICTURES is a folder (with all below it), a pattern in quotes, a text file with one picture per
line, or several pictures. EXAMPLES is a folder of class folders, a CSV file with path and label, an
edited predictions.csv, a sorted folder, a labeling project, or an export of Hugging Face or Label
Studio. To correct a sorting, drag pictures to the right folder of DIR and give the same command.

DIR gets one folder per class, _unknown for pictures of none of the classes, _unsure for doubtful
ones, predictions.csv, and the contact sheet index.html. Pictures are linked there (hard links or
copies where the system makes no symbolic links); they are only moved with --move, and `protorect
undo DIR` puts everything back. If it is interrupted, give the same command again.

Pictures are recognized by their content: JPEG, PNG, GIF, BMP, TIFF, WebP, AVIF, JPEG 2000, PPM, and
HEIC with pip install 'protorect[heic]'. Decoding uses at most 1600 MB in all threads together, or
what the environment variable PROTORECT_DECODING_MB says; larger pictures are reported.

networks (`protorect networks` lists them with their accuracy):
  efficientnet-lite2   trained on ImageNet, for photographs; comes with protorect
  best                 efficientnet-lite1 and -lite2 together: more accurate, half as fast
  RUN                  the folder of a run of `protorect train`, or a .safetensors file of weights
  onnx:PATH            an ONNX file; its options, as in onnx:PATH:mean=0.5,std=0.5, are below
  hf:NAME              a vision model of Hugging Face
Each may be followed by options, as in efficientnet-lite2:mirror=true.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from protorect._utils.files import write_text
from protorect.cli.arguments import (
    add_cache,
    add_device,
    add_parameters,
    given,
    parameters_text,
)
from protorect.cli.output import check_outputs, print_list
from protorect.cli.progress import progress_bar
from protorect.embedding.sources import DEFAULT_SOURCE
from protorect.embedding.sources.onnx import OnnxOptions
from protorect.labeling.examples import find_examples
from protorect.sorting.sort import SortOptions, SortResult, sort_into, watch
from protorect.uncertainty.thresholds import Thresholds

MOST_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("pictures", metavar="PICTURES", nargs="+")
    add(
        "--examples",
        required=True,
        action="append",
        metavar="EXAMPLES",
        help="labeled pictures; repeatable, a later one counts more",
    )
    add("--nested", action="store_true", help="EXAMPLES/cat/any/1.jpg is an example of cat, too")
    add("--out", required=True, type=Path, metavar="DIR", help="where they are sorted to")
    modes = parser.add_mutually_exclusive_group()
    mode = partial(modes.add_argument, dest="mode", action="store_const", default="link")
    mode("--link", const="link", help="link the pictures in DIR (the default)")
    mode("--copy", const="copy", help="copy them")
    mode("--move", const="move", help="move them; DIR records where they were")
    add("--network", default=DEFAULT_SOURCE, metavar="NAME", help="see above (%(default)s)")
    add("--method", metavar="NAME", help="the method (chosen by the number of pictures)")
    add_parameters(parser, Thresholds)
    parser.epilog = f"options of onnx:PATH:NAME=VALUE,...\n{parameters_text(OnnxOptions)}"
    add("--csv", type=Path, metavar="F.csv", help="write the predictions here, too")
    add("--parquet", action="store_true", help="write DIR/predictions.parquet, too")
    add("--no-sheet", dest="contact_sheet", action="store_false", help="make no contact sheet")
    add("--eval", action="store_true", help="measure: the pictures' folders are their true labels")
    add("--watch", action="store_true", help="continue to sort what arrives, until Ctrl-C")
    add_cache(parser)
    add_device(parser)


def run(options: argparse.Namespace) -> int:
    """Sort, and print where the pictures went; 1 if some could not be read or placed."""
    check_outputs([options.csv])
    sort_options = SortOptions(
        mode=options.mode,
        thresholds=Thresholds(**given(options, Thresholds)),
        contact_sheet=options.contact_sheet,
        parquet=options.parquet,
        evaluate=options.eval,
        progress_of=progress_bar,
    )
    names = ("method", "cache", "precision", "device")
    classifier_options = {name: getattr(options, name) for name in names}
    classifier_options["source"] = options.network
    examples = find_examples(options.examples, nested=options.nested)
    arguments = (options.pictures, examples, options.out, sort_options)
    if options.watch:
        with closing(watch(*arguments, **classifier_options)) as results:
            return _watch(results, options)
    result = sort_into(*arguments, **classifier_options)
    _report(result, options)
    return 1 if result.problems else 0


def _watch(results: Iterator[SortResult], options: argparse.Namespace) -> int:
    """Report the first result and then each new picture until Ctrl-C; 1 if there were problems."""
    first = next(results)
    _report(first, options)
    failed = bool(first.problems)
    print("watching; end with Ctrl-C", flush=True)
    try:
        for result in results:
            for placement in result.folder.plans[-1].placements:
                row = placement.prediction
                print(f"{row.probability:5.0%} {row.folder}: {row.path}", flush=True)
            problems = [f"{path}: {reason}" for path, reason in result.problems]
            print_list("could not be used", problems)
            failed |= bool(result.problems)
    except KeyboardInterrupt:
        pass
    return 1 if failed else 0


def _changed(changes: Sequence[tuple[str, str, int]]) -> str:
    """What is in another folder than after the last sorting."""
    count = sum(number for _, _, number in changes)
    parts = [f"{number} {old} -> {new}" for old, new, number in changes[:MOST_NAMED]]
    more = ", ..." if len(changes) > MOST_NAMED else ""
    return f"{count} picture{'s' if count > 1 else ''} changed: {', '.join(parts)}{more}"


def _report(result: SortResult, options: argparse.Namespace) -> None:
    """Print where the pictures went, and write the requested copy of the predictions."""
    out, skipped = options.out, Counter(file.kind for file in result.skipped)
    print(result.network)
    notes = [
        (result.finished, "left by an interruption, now in their place"),
        *((count, f"skipped: {kind}") for kind, count in skipped.most_common()),
        (result.corrections, "moved by hand since the last sorting, now examples"),
        (len(result.examples), "already among the examples, keeping their label"),
        (result.replaced_links["hard link"], "hard links, as symbolic links cannot be made here"),
        (result.replaced_links["copy"], "copies, as links cannot be made here"),
    ]
    for notice in result.notices:
        print(notice)
    for count, what in notes:
        if count:
            print(f"{count} {what}")
    counts = Counter(placement.prediction.folder for placement in result.folder.placements)
    for folder in sorted(counts, key=lambda folder: (folder.startswith("_"), folder)):
        print(f"{counts[folder]:7} {folder}")
    if result.changes:
        print(_changed(result.changes))
    if result.evaluation is not None:
        print("\n".join(result.evaluation.summary()))
        for true, label, pictures in result.evaluation.confused:
            print(f"{len(pictures):7} {true} taken for {label}")
    if result.advice is not None:
        print("\n".join(result.advice.sentences()))
    print(out / "index.html" if (out / "index.html").exists() else out)
    problems = [f"{path}: {reason}" for path, reason in result.problems]
    print_list("could not be used", problems, MOST_NAMED, f"in {out / 'errors.csv'}")
    if options.csv is not None and result.folder.plans:
        write_text(options.csv, (out / "predictions.csv").read_text(encoding="utf-8"))
