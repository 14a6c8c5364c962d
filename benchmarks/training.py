"""The training loop against its bare step; bfloat16 against float32."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.machine import compare, rates_and_ratio
from benchmarks.network import NetworkCase, bare_training, picture_shape
from protorect.backbones.inference import uses_bfloat16
from protorect.report.table import Table
from protorect.training.config import TrainingConfig
from protorect.training.loop import StepReport, train

CASES = (NetworkCase(28, 1, 256, 4, True, 12), NetworkCase(84, 3, 64, 8, True, 8))
SMALL_CASES = (NetworkCase(28, 1, 32, 4, True, 3),)


def measure(small: bool = False) -> dict[str, Any]:
    """All cases; the small version only shows that everything runs."""
    cases, rounds = (SMALL_CASES, 1) if small else (CASES, 5)
    bfloat16 = compare(bare_training(cases[0], True), bare_training(cases[0], False), rounds)
    return {
        "cases": [_case(case, rounds) for case in cases],
        "bfloat16": bfloat16 | {"size": cases[0].size, "instructions": uses_bfloat16("auto")},
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """The training loop against the bare step, and bfloat16 against float32."""
    bfloat16 = measured["bfloat16"]
    instructions = "instructions" if bfloat16["instructions"] else "no instructions"
    precision = "bfloat16" if bfloat16["instructions"] else "float32"
    return {
        "training": Table(
            f"Computed in {precision}.",
            ["pictures", "batch", "images/s", "bare", "of bare"],
            [
                [picture_shape(case), str(case["batch"]), *rates_and_ratio(case)]
                for case in measured["cases"]
            ],
        ),
        "bfloat16": Table(
            f"The bare step. This processor has {instructions} for bfloat16, so "
            f'`precision = "auto"` trains in {precision}.',
            ["pictures", "bfloat16 images/s", "float32 images/s", "bfloat16 / float32"],
            [[f"{bfloat16['size']} x {bfloat16['size']}", *rates_and_ratio(bfloat16)]],
        ),
    }


def _case(case: NetworkCase, rounds: int) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        case.packed(Path(folder) / "packed")
        library = _loop(case, Path(folder))
        rates = compare(library, bare_training(case, uses_bfloat16("auto")), rounds)
    shape = {"size": case.size, "channels": case.channels, "batch": case.batch}
    return shape | rates


def _loop(case: NetworkCase, folder: Path) -> Callable[[], float]:
    """The rate of a new training, images/s after its first step."""
    config = TrainingConfig(
        epochs=1, batch_size=case.batch, steps_per_epoch=case.steps + 1, rates=((0, 0.01),)
    )
    times: list[float] = []

    def report(_: StepReport) -> None:
        times.append(time.perf_counter())

    def library() -> float:
        times.clear()
        with TemporaryDirectory(dir=folder) as out:
            train(folder / "packed", Path(out) / "run", config, report=report)
        return case.steps * case.batch / (times[-1] - times[0])

    return library
