"""Damaged files of every kind that is read: each is read or refused, in bounded time and memory.

Worker processes call the command in-process, see `fuzz_worker`. A case is determined by the seed,
the name of its target and its number; `python -m campaign.fuzz --target NAME --number N` repeats
one and leaves its files. What was found once is in tests/campaign/found, one folder per target, and
is tried again each time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from campaign.fuzz_processes import STATE, Case, Worker, in_process
from protorect.cli import COMMANDS
from protorect.report.table import Table

CASES, SEED = 20_000, "1"
FOUND = Path(__file__).parent.parent / "tests" / "campaign" / "found"
_CHUNK = 25  # cases that a worker takes at once
_KINDS = {
    "features": "feature files, stores, episodes, saved estimators",
    "training": "packed data sets, recipes, runs, checkpoints, weights",
    "sorting": "tables and lists of examples, journals, caches, saved classifiers",
    "labeling": "labeling projects",
    "archives": "zip and tar archives, pickles, boxes, class splits",
    "pictures": "pictures of nine formats",
    "networks": "ONNX networks",
}
Chunk = tuple[Any, list[Case]]


def run(seconds: float, cases: int = CASES, seed: str = SEED, only: str = "") -> dict[str, Any]:
    """Run the cases, as many as there is time for; returns counts and failures."""
    end = time.monotonic() + seconds
    for name in COMMANDS:  # imported once, before the workers are forked
        import_module(f"protorect.cli.{name}")
    import_module("torch._dynamo")
    from campaign.fuzz_targets import TARGETS

    folder = Path(tempfile.mkdtemp(prefix="protorect-fuzz-", dir=_fast_folder()))
    try:
        targets = [one for one in TARGETS if only in one.name]
        in_process(_make_seeds, folder, sorted({one.seed for one in targets}))
        return _Campaign(folder, seed, end).run([*_found(targets), *_chunks(targets, cases)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """The table of docs/reliability.md: cases and how they ended."""
    rows = [
        [_KINDS[name], f"{sum(one.values()):,}", *(f"{one.get(key, 0):,}" for key in "012")]
        for name, one in measured["kinds"].items()
    ]
    caption = f"{measured['cases']:,} damaged files, of which none led to anything else."
    if measured["failures"]:
        caption = f"{measured['cases']:,} damaged files; {len(measured['failures'])} failures."
    return {"fuzz": Table(caption, ["files", "cases", "used", "in part", "refused"], rows)}


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _make_seeds(folder: Path, names: list[str]) -> None:
    from campaign.fuzz_seeds import SEEDS

    os.environ |= {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / STATE)}
    with open(os.devnull, "w") as nothing:
        sys.stdout = nothing
        for name in names:
            # A path inside its seed must stay valid: the same folder is filled again for each case.
            root = folder / name / name
            root.mkdir(parents=True)
            SEEDS[name](root)
            shutil.copytree(root, folder / name / "pristine", symlinks=True)


def _found(targets: list[Any]) -> Iterator[Chunk]:
    """The files that once led to a failure."""
    for one in targets:
        files = sorted((FOUND / one.folder_name).glob("*"))
        if files:
            yield one, list(files)


def _chunks(targets: list[Any], cases: int) -> Iterator[Chunk]:
    """Numbers of cases of each target, by its share, in rounds over all targets."""
    whole = sum(one.share for one in targets)
    counts = {one.name: max(1, round(cases * one.share / whole)) for one in targets}
    for start in range(0, max(counts.values()), _CHUNK):
        for one in targets:
            if start < counts[one.name]:
                yield one, list(range(start, min(start + _CHUNK, counts[one.name])))


class _Campaign:
    """Workers that take chunks of cases; no two work on the same seed at the same time."""

    def __init__(self, folder: Path, seed: str, end: float) -> None:
        self.folder, self.seed, self.end = folder, seed, end
        self.counts: dict[str, Counter[str]] = {}
        self.failures: list[str] = []
        self.slowest, self.largest = 0.0, 0.0

    def run(self, chunks: list[Chunk]) -> dict[str, Any]:
        """Run all chunks, or those that there is time for."""
        workers = [Worker(self.folder, self.seed) for _ in range(len(os.sched_getaffinity(0)))]
        try:
            while True:
                self._assign(workers, chunks)
                busy = [one for one in workers if one.waiting]
                if not busy:
                    break
                wait([one.pipe for one in busy], timeout=1.0)
                for one in busy:
                    self._collect(one)
        finally:
            for one in workers:
                one.stop()
        return {
            "cases": sum(sum(one.values()) for one in self.counts.values()),
            "seed": self.seed,
            "kinds": {name: dict(sorted(one.items())) for name, one in sorted(self.counts.items())},
            "slowest_seconds": round(self.slowest, 1),
            "largest_megabytes": round(self.largest),
            "failures": self.failures,
        }

    def _assign(self, workers: list[Worker], chunks: list[Chunk]) -> None:
        for one in workers:
            if one.waiting or time.monotonic() > self.end:
                continue
            taken = {other.target.seed for other in workers if other.waiting}
            free = next((i for i, (target, _) in enumerate(chunks) if target.seed not in taken), -1)
            if free >= 0:
                one.start(*chunks.pop(free))

    def _collect(self, worker: Worker) -> None:
        target = worker.target
        for case, outcome in worker.outcomes():
            counts = self.counts.setdefault(target.seed, Counter())
            counts[str(outcome.code)] += 1
            self.slowest = max(self.slowest, outcome.seconds)
            self.largest = max(self.largest, outcome.megabytes)
            if outcome.problem:
                name = case.name if isinstance(case, Path) else case
                self.failures.append(f"{target.name} {name}: {outcome.problem}")
                print(self.failures[-1], flush=True)


def main() -> int:
    """Run some cases, or repeat one."""
    parser = argparse.ArgumentParser(prog="python -m campaign.fuzz", description=__doc__)
    parser.add_argument("--target", default="", help="only targets with this in their name")
    parser.add_argument("--number", type=int, help="repeat this case of the target")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", default=SEED)
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args()
    if options.number is not None:
        return _repeat(options.target, options.number, options.seed)
    measured = run(options.seconds, options.cases, options.seed, options.target)
    print(json.dumps({name: value for name, value in measured.items() if name != "failures"}))
    return 1 if measured["failures"] else 0


def _repeat(name: str, number: int, seed: str) -> int:
    """Run one case and show everything about it; its files stay."""
    from campaign.fuzz_targets import TARGETS
    from campaign.fuzz_worker import run_case

    target = next(one for one in TARGETS if one.name == name)
    folder = Path(tempfile.mkdtemp(prefix="protorect-fuzz-", dir=_fast_folder()))
    in_process(_make_seeds, folder, [target.seed])
    root = folder / target.seed
    outcome = run_case(target, root, seed, number)
    print(f"{root / root.name}.output", target.path(root / root.name), outcome, sep="\n")
    return 1 if outcome.problem else 0


if __name__ == "__main__":
    sys.exit(main())
