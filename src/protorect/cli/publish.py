"""Write the best weights of a run with a model card, for others to use.

The files are NAME.safetensors and NAME.md, which says what the weights were trained on, how, under
which license, and their accuracy on novel classes.

RESULTS is what `protorect evaluate --json` wrote for features by these weights.
"""

import argparse
from pathlib import Path

from protorect.training.publish import publish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("run_folder", metavar="RUN", type=Path)
    add("name", metavar="NAME", help="the name of the weights, such as omniglot-conv64")
    add("--results", type=Path, required=True, metavar="RESULTS.json")
    add("--out", type=Path, default=Path(), metavar="FOLDER", help="for both files (here)")


def run(options: argparse.Namespace) -> None:
    """Publish, and print the paths of the files."""
    for path in publish(options.run_folder, options.name, options.results, options.out):
        print(path)
