"""Write the features of pictures by a trained backbone, for `protorect evaluate`.

SOURCE is the folder of a run, a .safetensors file of weights, or a network that `protorect
networks` lists. PICTURES is what `protorect prepare`
made, or a folder or archive of class folders.

OUT is a .npz file, or, for large sets, a folder whose arrays are memory-mapped when read. It
records which weights, pictures and preprocessing made it. To continue an interrupted extraction,
give the same command again; the features so far are in OUT.partial.
"""

import argparse
import sys
from pathlib import Path

from protorect.backbones.pretrained import pretrained_weights
from protorect.cli.arguments import add_cache, add_device
from protorect.cli.output import print_list
from protorect.cli.progress import progress_bar
from protorect.embedding.extract import extract
from protorect.embedding.sources import COMBINATIONS, IMAGENET, load_embedder
from protorect.embedding.sources.embedder import described


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    names = [*IMAGENET, *COMBINATIONS, *pretrained_weights()]
    parser.epilog = f"networks that come with the package: {', '.join(names)}"
    add("source", metavar="SOURCE")
    add("pictures", metavar="PICTURES", type=Path)
    add("--split", help="of a prepared data set: train, val or test (test)")
    add("--out", type=Path, required=True, metavar="OUT", help="the file or folder to write")
    add_device(parser)
    add("--workers", type=int, metavar="N", help="number of threads (default: one per core)")
    add_cache(parser)


def run(options: argparse.Namespace) -> None:
    """Extract, and print the path of the features."""
    embedder = load_embedder(options.source, precision=options.precision, device=options.device)
    with progress_bar("pictures") as progress:
        done = extract(
            embedder,
            options.pictures,
            options.out,
            split=options.split,
            workers=options.workers,
            cache=options.cache,
            progress=progress,
        )
    print(described(embedder), file=sys.stderr)
    if done.resumed:
        print(f"resumed after {done.resumed} pictures", file=sys.stderr)
    if done.inverted:
        print("dark strokes on a bright ground: dark and bright were exchanged", file=sys.stderr)
    print_list("could not be read", done.unreadable)
    print(options.out if done.written else f"{options.out} (exists already)")
