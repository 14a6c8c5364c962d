"""Extracting features against the bare forward pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.machine import compare, rates_and_ratio
from benchmarks.network import NetworkCase, bare_forward, picture_shape
from protorect.backbones.inference import embed, uses_bfloat16
from protorect.backbones.preprocessing import Preprocessing
from protorect.report.table import Table

# Batches as `protorect.backbones.inference.batch_size` makes them.
CASES = (NetworkCase(28, 1, 256, 0, False, 16), NetworkCase(84, 3, 37, 0, False, 28))
SMALL_CASES = (NetworkCase(28, 1, 256, 0, False, 1),)


def measure(small: bool = False) -> dict[str, Any]:
    """All cases; the small version only shows that everything runs."""
    cases, rounds = (SMALL_CASES, 1) if small else (CASES, 5)
    return {"cases": [_case(case, rounds) for case in cases]}


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """Extraction against the bare forward pass."""
    rows = [[picture_shape(case), *rates_and_ratio(case)] for case in measured["cases"]]
    return {"extraction": Table("", ["pictures", "images/s", "bare", "of bare"], rows)}


def _case(case: NetworkCase, rounds: int) -> dict[str, Any]:
    bfloat16 = uses_bfloat16("auto")
    with TemporaryDirectory() as folder:
        rates = compare(
            _embedding(case, Path(folder), bfloat16), bare_forward(case, bfloat16), rounds
        )
    return {"size": case.size, "channels": case.channels} | rates


def _embedding(case: NetworkCase, folder: Path, bfloat16: bool) -> Callable[[], float]:
    data = case.packed(folder / "packed")
    images = data.split("train").images
    backbone, preprocessing = case.backbone(), Preprocessing(data.mean, data.std)

    def library() -> float:
        start = time.perf_counter()
        embed(backbone, images, preprocessing, bfloat16=bfloat16)
        return len(images) / (time.perf_counter() - start)

    return library
