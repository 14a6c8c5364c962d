"""`protorect publish`: the weights of a run for others to use, with their card."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Write the best weights of a run as NAME.safetensors, and NAME.md, a card that says what they were
trained on, how, under which licence, and how well they do on classes they have never seen.

RESULTS is what `protorect evaluate --json` wrote for features by these weights.
"""


def add_to(verbs: Any) -> None:
    """Add this verb to the parser."""
    parser = verbs.add_parser(
        "publish",
        help="write the weights of a run with a card, for others to use",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("run_folder", metavar="RUN", type=Path)
    add("name", metavar="NAME", help="what the weights are called, as in omniglot-conv64")
    add("--results", type=Path, required=True, metavar="RESULTS.json")
    add("--out", type=Path, default=Path(), metavar="FOLDER", help="for both files (here)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Publish, and print where the files are."""
    from protorect.training.publish import publish

    for path in publish(options.run_folder, options.name, options.results, options.out):
        print(path)
