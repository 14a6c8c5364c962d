"""Index and pack a data set, once: from the folders it came in to memory-mapped arrays."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from protorect._utils.files import folder_written_whole
from protorect._utils.manifest import MANIFEST
from protorect._utils.text import printable
from protorect.datasets.catalogue import Dataset, dataset
from protorect.datasets.division import Division, Fractions, divide
from protorect.datasets.pack_split import COLUMNS, SplitResult, pack_split, split_record
from protorect.datasets.packed import FORMAT, VERSION, PackedDataset
from protorect.datasets.packing import packing_processes
from protorect.datasets.splits import ClassSplit
from protorect.errors import DataError, OptionError

INDEX = "index.csv"
_FEW = 500  # pictures that are packed before other processes would have started
SMALLEST_SIZE, LARGEST_SIZE = 8, 1024  # pixels a side of a packed picture


def prepare(
    name: str,
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    size: int | None = None,
    channels: int | None = None,
    split: ClassSplit | Fractions | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PackedDataset:
    """Index every picture and pack it; the folder `out` appears whole or not at all.

    Parameters
    ----------
    name
        Of a known data set; `folder` for any folder of class folders.
    root
        The folder or archive it is in.
    out
        The folder to make.
    size
        Side of a packed picture; the data set's own if not given.
    channels
        1 for grey, 3 for colour; the data set's own if not given.
    split
        Class names of each split, or fractions of the classes; as published if not given.
    seed
        For fractions.
    workers
        Processes; as many as there are processors if not given, one for a small set.
    progress
        Called with the number of pictures done and the number of all.
    """
    kind = dataset(name)
    kind = kind if channels is None else replace(kind, channels=channels)
    root, out = Path(root), Path(out)
    size = _checked_size(kind, size)
    if workers is not None and workers < 1:
        raise OptionError(f"workers must be 1 or more, not {workers}.")
    check_apart(root, out)
    with folder_written_whole(out) as beside:
        scratch = beside / "scratch"
        scratch.mkdir()
        division = divide(kind, root, scratch, split, seed)
        results, records = _pack(kind, division, size, beside, workers, progress)
        shutil.rmtree(scratch)
        manifest = _manifest(kind, size, division, results) | {"splits": records}
        manifest["source"] = {
            "root": printable(root.resolve().name),
            "split": _split_words(split, seed),
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        (beside / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return PackedDataset.open(out)


def _pack(
    kind: Dataset,
    division: Division,
    size: int,
    folder: Path,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[dict[str, SplitResult], dict[str, dict[str, Any]]]:
    """What became of each split, and its record for the manifest."""
    total = sum(len(one) for split in division.splits.values() for one in split.values())
    results: dict[str, SplitResult] = {}
    records: dict[str, Future[dict[str, Any]]] = {}
    before = 0

    def tell(done: int) -> None:
        if progress is not None:
            progress(before + done, total)

    with (
        (folder / INDEX).open("w", newline="", encoding="utf-8") as file,
        packing_processes(workers or _processes(total)) as run,
        ThreadPoolExecutor(1) as hashing,
    ):
        index = csv.writer(file, lineterminator="\n")
        index.writerow(COLUMNS)
        for name, classes in division.splits.items():
            results[name] = pack_split(name, classes, kind, size, folder, run, index.writerow, tell)
            # A split that is packed is hashed while the next one is on its way.
            records[name] = hashing.submit(split_record, name, folder, results[name])
            before += sum(map(len, classes.values()))
    return results, {name: record.result() for name, record in records.items()}


def _manifest(
    kind: Dataset, size: int, division: Division, results: dict[str, SplitResult]
) -> dict[str, Any]:
    seen = next(iter(results))  # train, unless the data set has only classes to test on
    return {
        "format": FORMAT,
        "version": VERSION,
        "dataset": kind.name,
        "size": size,
        "channels": kind.channels,
        "flip": kind.flip,
        "crop_padding": round(kind.crop_padding * size / kind.size),
        "mean": results[seen].mean,
        "std": results[seen].std,
        "statistics_of": seen,
        "unreadable": [one for result in results.values() for one in result.unreadable],
        "left_out": list(division.left_out),
    }


def _checked_size(kind: Dataset, size: int | None) -> int:
    size = kind.size if size is None else size
    if not SMALLEST_SIZE <= size <= LARGEST_SIZE:
        raise OptionError(
            f"size must be from {SMALLEST_SIZE} to {LARGEST_SIZE} pixels, not {size}."
        )
    return size


def check_apart(root: Path, out: Path) -> None:
    """Raise DataError if `out` would lie among the pictures."""
    if root.is_dir() and out.resolve().is_relative_to(root.resolve()):
        raise DataError(
            f"{printable(str(out))} is inside {printable(str(root))}, where it would be taken for "
            "a class; give an --out elsewhere."
        )


def _processes(pictures: int) -> int:
    if pictures < _FEW:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _split_words(split: ClassSplit | Fractions | None, seed: int) -> str:
    if split is None:
        return f"as published; a folder by its folders or the default fractions with seed {seed}"
    if isinstance(split, ClassSplit):
        return "given class by class"
    return f"fractions {', '.join(f'{share:g}' for share in split)} with seed {seed}"
