"""List the data sets that `protorect prepare` knows, and what their folders must look like."""

import argparse

from protorect.datasets.catalogue import DATASETS, Dataset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(options: argparse.Namespace) -> None:
    """Print one paragraph per data set."""
    print("\n\n".join(_paragraph(dataset) for dataset in DATASETS.values()))


def _paragraph(dataset: Dataset) -> str:
    color = "grayscale" if dataset.channels == 1 else "color"
    return "\n".join(
        (
            dataset.name,
            f"  classes  {_classes(dataset)}",
            f"  packed   {dataset.size} x {dataset.size}, {color}",
            f"  ROOT     {dataset.expects}",
            f"  from     {dataset.source}",
            f"  license  {dataset.license}",
        )
    )


def _classes(dataset: Dataset) -> str:
    split = dataset.split
    if split is None:
        return "your own, divided by --split"
    sizes = [len(names) * dataset.rotations for names in (split.train, split.val, split.test)]
    train, val, test = (f"{size:,}" for size in sizes)
    counts = f"{train} train, {val} val, {test} test"
    if dataset.rotations == 1:
        return counts
    return f"{counts} ({len(split.names):,} characters in {dataset.rotations} rotations)"
