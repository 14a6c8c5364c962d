"""A hundred thousand small pictures: sorted, sorted again, and opened to be labeled."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.machine import busy_cores, disturbance, in_new_process
from protorect.report.table import Table


@dataclass(frozen=True)
class Work:
    """The pictures."""

    pictures: int = 100_000
    classes: int = 20
    side: int = 64
    network: str = "efficientnet-lite0"


SMALL = Work(40, 2, 32)
SHOTS = 5
LARGEST_PAGE = 5_000_000  # bytes of a page of the contact sheet
_FOLDER = 1000  # pictures


def measure(small: bool = False) -> dict[str, Any]:
    """All steps; the small version only shows that everything runs."""
    work, busy = SMALL if small else Work(), busy_cores()
    with TemporaryDirectory(prefix="protorect-many-") as folder:
        root = Path(folder)
        write_pictures(root, work)
        steps = {
            "`sort`": in_new_process(measured_sort, root, work),
            "`sort` again, features cached": in_new_process(measured_sort, root, work),
            "a new project, features cached": in_new_process(measured_session, root, work),
            "the same project opened again": in_new_process(measured_session, root, work),
        }
        pages = [page.stat().st_size for page in (root / "out").glob("index*.html")]
    return {
        "pictures": work.pictures,
        "network": work.network,
        "steps": steps,
        "pages": len(pages),
        "largest_page": max(pages),
        "busy": busy,
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """One row per step."""
    count = measured["pictures"]
    header = ["step", "pictures", "seconds", "pictures/s", "memory"]
    rows = [
        [
            name,
            f"{count:,}",
            f"{one['seconds']:,.1f}",
            f"{count / one['seconds']:,.0f}",
            f"{one['bytes'] / 1e9:.2f} GB",
        ]
        for name, one in measured["steps"].items()
    ]
    note = (
        f"{measured['network']}; memory is the peak of the process. The contact sheet has "
        f"{measured['pages']:,} pages, the largest of {measured['largest_page'] / 1e6:.1f} MB."
    )
    note += disturbance(measured["busy"])
    return {"many-pictures": Table(note, header, rows)}


def write_pictures(root: Path, work: Work) -> None:
    """Write distinct pictures, that of their class with noise, and examples of every class."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (work.classes, 8, 8, 3), np.uint8)
    bases = [np.asarray(Image.fromarray(one).resize((work.side,) * 2)) for one in coarse]
    files = list(_files(root, work))
    for folder in {path.parent for path, _ in files}:
        folder.mkdir(parents=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(partial(_write, bases), range(len(files)), *zip(*files, strict=True)))


def _files(root: Path, work: Work) -> Iterator[tuple[Path, int]]:
    """The path and the class of every picture and example."""
    for number in range(work.classes * SHOTS):
        label = number % work.classes
        yield root / "examples" / f"class {label}" / f"{number}.jpg", label
    for number in range(work.pictures):
        yield root / "pictures" / str(number // _FOLDER) / f"{number}.jpg", number % work.classes


def _write(bases: list[Any], number: int, path: Path, label: int) -> None:
    noise = np.random.default_rng(number).normal(0, 20, bases[label].shape)
    pixels = np.clip(bases[label] + noise, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path, quality=80)


def measured_sort(root: Path, work: Work) -> dict[str, float]:
    """Seconds and peak of memory of the command, without its imports."""
    from protorect.cli import main

    paths = [root / "pictures", "--examples", root / "examples", "--out", root / "out"]
    options = ["--cache", root / "cache", "--network", work.network]
    start = time.perf_counter()
    if code := main(["sort", *map(str, [*paths, *options])]):
        raise RuntimeError(f"the command ended with {code}")
    return {"seconds": time.perf_counter() - start, "bytes": _peak()}


def measured_session(root: Path, work: Work) -> dict[str, float]:
    """Seconds until a session has all pictures and their probabilities, and its peak of memory."""
    from protorect.labeling.session import LabelingSession

    start = time.perf_counter()
    with LabelingSession.open(
        root / "project",
        root / "pictures",
        root / "examples",
        source=work.network,
        cache=root / "cache",
    ) as session:
        session.wait()
        seconds = time.perf_counter() - start
        if session.state().pictures != work.pictures + work.classes * SHOTS:
            raise RuntimeError("pictures are missing")
    return {"seconds": seconds, "bytes": _peak()}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
