"""Preparing a data set against bare decoding, and the memory it takes."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.bare_decoding import decode_all
from benchmarks.machine import compare, extra_bytes_of_all, in_new_process, rates_and_ratio
from protorect.datasets.prepare import prepare
from protorect.report.table import Table

DIFFERENT = 20  # pictures; the others are copies of them
CLASSES = 20


@dataclass(frozen=True)
class PictureCase:
    """Files of one kind."""

    kind: str  # JPEG or PNG
    side: int  # of the files, in pixels
    size: int  # of the packed pictures
    count: int
    workers: int


def measure(small: bool = False) -> dict[str, Any]:
    """All cases; the small version only shows that everything runs."""
    if small:
        cases, counts, rounds = [PictureCase("PNG", 24, 16, 40, 1)], (60, 120), 1
    else:
        kinds = [(kind, *shape) for kind in ("JPEG", "PNG") for shape in ((84, 5000), (500, 600))]
        processors = sorted({1, os.cpu_count() or 1})
        cases = [PictureCase(k, side, 84, n, w) for k, side, n in kinds for w in processors]
        counts, rounds = (10_000, 100_000), 5
    workers = cases[-1].workers
    return {
        "cases": [_case(case, rounds) for case in cases],
        "workers": workers,
        "memory": [_memory(PictureCase("PNG", 28, 28, count, workers)) for count in counts],
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """Preparing against bare decoding, and the memory it takes."""
    few, many = measured["memory"]
    per_picture = (many["bytes"] - few["bytes"]) / (many["pictures"] - few["pictures"])
    return {
        "preparing": Table(
            "",
            ["pictures", "workers", "pictures/s", "bare", "of bare"],
            [
                [
                    f"{case['kind']}, {case['side']} to {case['size']} px",
                    str(case["workers"]),
                    *rates_and_ratio(case),
                ]
                for case in measured["cases"]
            ],
        ),
        "preparing-memory": Table(
            f"Memory with {measured['workers']} workers, above that of "
            f"Python before the start: {per_picture:.0f} bytes per further picture.",
            ["pictures", "memory"],
            [[f"{one['pictures']:,}", f"{one['bytes'] / 1e6:.0f} MB"] for one in (few, many)],
        ),
    }


def _case(case: PictureCase, rounds: int) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "pictures"
        paths = write_pictures(case, root)

        def library() -> None:
            with TemporaryDirectory(dir=folder) as out:
                prepare("folder", root, Path(out) / "p", size=case.size, workers=case.workers)

        def bare() -> None:
            decode_all(paths, case.size, case.workers)

        rates = compare(_rate(library, case.count), _rate(bare, case.count), rounds)
    return asdict(case) | rates


def _rate(work: Callable[[], None], count: int) -> Callable[[], float]:
    def rate() -> float:
        start = time.perf_counter()
        work()
        return count / (time.perf_counter() - start)

    return rate


def _memory(case: PictureCase) -> dict[str, int]:
    with TemporaryDirectory() as folder:
        write_pictures(case, Path(folder) / "pictures")
        return {"pictures": case.count, "bytes": in_new_process(memory_of, case, folder)}


def memory_of(case: PictureCase, folder: str) -> int:
    """Bytes that preparing needs."""
    root, out = Path(folder) / "pictures", Path(folder) / "packed"
    options = {"size": case.size, "workers": case.workers}
    return extra_bytes_of_all(lambda: prepare("folder", root, out, **options))


def write_pictures(case: PictureCase, root: Path) -> list[str]:
    """Write class folders of pictures with the detail of photographs; returns the paths."""
    encoded = [_encoded(case, seed) for seed in range(DIFFERENT)]
    paths = []
    for label in range(CLASSES):
        (root / f"class {label}").mkdir(parents=True)
    for number in range(case.count):
        path = root / f"class {number % CLASSES}" / f"{number}.{case.kind.lower()}"
        path.write_bytes(encoded[number % DIFFERENT])
        paths.append(str(path))
    return sorted(paths)


def _encoded(case: PictureCase, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8))
    smooth = np.asarray(coarse.resize((case.side, case.side), Image.Resampling.BICUBIC))
    pixels = (smooth + rng.normal(0, 6, smooth.shape)).clip(0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(
        file, case.kind, **({"quality": 90} if case.kind == "JPEG" else {})
    )
    return file.getvalue()
