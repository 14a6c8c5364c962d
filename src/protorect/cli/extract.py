"""Write the features of pictures by a trained backbone, for `protorect evaluate`.

SOURCE is the folder of a run, a .safetensors file of weights, the name of weights that come with
the package, or onnx:PATH or hf:NAME as in `protorect sort`. PICTURES is what `protorect prepare`
made, or a folder or archive of class folders.

OUT is a .npz file, or, for large sets, a folder whose arrays are memory-mapped when read. It
records which weights, pictures and preprocessing made it. To continue an interrupted extraction,
give the same command again; the features so far are in OUT.partial.
"""

import argparse
import sys
from pathlib import Path

from protorect._utils.parameters import PRECISIONS
from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.registry import BACKBONES
from protorect.cli.output import print_list
from protorect.cli.progress import progress_bar
from protorect.embedding.extract import extract


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    imagenet = (name for name, spec in BACKBONES.items() if spec.pretrained)
    names = ", ".join([*pretrained_weights(), *imagenet])
    parser.epilog = f"weights that come with the package: {names} (ImageNet)"
    add("source", metavar="SOURCE")
    add("pictures", metavar="PICTURES", type=Path)
    add("--split", help="of a prepared data set: train, val or test (test)")
    add("--out", type=Path, required=True, metavar="OUT", help="the file or folder to write")
    add("--precision", default="auto", choices=PRECISIONS, help="auto: bfloat16 where it is fast")
    add("--device", default="cpu", help="where to compute, as a torch device (%(default)s)")
    add("--workers", type=int, metavar="N", help="number of threads (default: one per core)")
    cache = parser.add_mutually_exclusive_group().add_argument
    cache("--cache", type=Path, metavar="FOLDER", help="cache features here (your cache folder)")
    cache("--no-cache", action="store_true", help="cache no features")


def run(options: argparse.Namespace) -> None:
    """Extract, and print the path of the features."""
    with progress_bar("pictures") as progress:
        done = extract(
            options.source,
            options.pictures,
            options.out,
            split=options.split,
            precision=options.precision,
            device=options.device,
            workers=options.workers,
            cache=options.cache or not options.no_cache,
            progress=progress,
        )
    if done.resumed:
        print(f"resumed after {done.resumed} pictures", file=sys.stderr)
    if done.inverted:
        print("dark strokes on a bright ground: dark and bright were exchanged", file=sys.stderr)
    print_list("could not be read", done.unreadable)
    print(options.out if done.written else f"{options.out} (exists already)")
