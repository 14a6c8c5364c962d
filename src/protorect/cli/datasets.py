"""`protorect datasets`: the data sets that are known, and what their folders must look like."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from protorect.datasets.catalogue import Dataset


def add_to(verbs: Any) -> None:
    """Add this verb to the parser."""
    parser = verbs.add_parser(
        "datasets",
        help="list known data sets: where to get them, licences, folders",
        description="List the data sets that `protorect prepare` knows.",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print one paragraph a data set."""
    from protorect.datasets.catalogue import DATASETS

    print("\n\n".join(_paragraph(dataset) for dataset in DATASETS.values()))


def _paragraph(dataset: Dataset) -> str:
    kind = "grey" if dataset.channels == 1 else "colour"
    return "\n".join(
        (
            dataset.name,
            f"  classes  {_classes(dataset)}",
            f"  packed   {dataset.size} x {dataset.size}, {kind}",
            f"  ROOT     {dataset.expects}",
            f"  from     {dataset.source}",
            f"  licence  {dataset.licence}",
        )
    )


def _classes(dataset: Dataset) -> str:
    split = dataset.split
    if split is None:
        return "your own, divided by --split"
    sizes = [len(names) * dataset.turns for names in (split.train, split.val, split.test)]
    train, val, test = (f"{size:,}" for size in sizes)
    turned = f" ({len(split.names):,} characters in 4 rotations)" if dataset.turns > 1 else ""
    return f"{train} train, {val} val, {test} test{turned}"
