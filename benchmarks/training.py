"""The training loop against its bare step; bfloat16 against float32."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.machine import compare
from benchmarks.network import NetworkCase, bare_training
from protorect.backbones.inference import uses_bfloat16
from protorect.training import TrainingConfig, train
from protorect.training.loop import StepReport

TEXT = """\
`protorect train` with ConvNet-64: pictures gathered from the memory-mapped array, random crops \
and mirroring, the step, the figures shown. *Bare* is forward, backward and optimiser step on one \
batch that is in memory already. Computed in {precision}.

| pictures | batch | images/s | bare | of bare |
|---|---:|---:|---:|---:|
{rows}
bfloat16 against float32, the bare step at {half_size} px: {half:,.0f} and {single:,.0f} images/s, \
{times:.2f} times as fast. This processor has {instructions} for bfloat16, so \
`precision = "auto"` trains in {precision}.
"""
ROW = "| {size} x {size} x {channels} | {batch} | {ours:,.0f} | {bare:,.0f} | {fraction:.2f} |\n"
CASES = (NetworkCase(28, 1, 256, 4, True, 12), NetworkCase(84, 3, 64, 8, True, 8))
SMALL_CASES = (NetworkCase(28, 1, 32, 4, True, 3),)


def measure(small: bool = False) -> dict[str, Any]:
    """All cases; the small version only shows that everything runs."""
    cases, rounds = (SMALL_CASES, 1) if small else (CASES, 5)
    half = compare(bare_training(cases[0], True), bare_training(cases[0], False), rounds)
    return {
        "cases": [_case(case, rounds) for case in cases],
        "bfloat16": half | {"size": cases[0].size, "instructions": uses_bfloat16("auto")},
    }


def text(figures: dict[str, Any]) -> str:
    """What the page says."""
    rows = "".join(ROW.format(**case) for case in figures["cases"])
    half = figures["bfloat16"]
    return TEXT.format(
        rows=rows,
        precision="bfloat16" if half["instructions"] else "float32",
        instructions="instructions" if half["instructions"] else "no instructions",
        half_size=half["size"],
        half=half["ours"],
        single=half["bare"],
        times=half["fraction"],
    )


def _case(case: NetworkCase, rounds: int) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        case.packed(Path(folder) / "packed")
        ours = _loop(case, Path(folder))
        found = compare(ours, bare_training(case, uses_bfloat16("auto")), rounds)
    shape = {"size": case.size, "channels": case.channels, "batch": case.batch}
    return shape | found


def _loop(case: NetworkCase, folder: Path) -> Callable[[], float]:
    """A new training each time; images/s from the end of its first step on."""
    config = TrainingConfig(
        epochs=1, batch_size=case.batch, steps_per_epoch=case.steps + 1, rates=((0, 0.01),)
    )
    times: list[float] = []

    def report(_: StepReport) -> None:
        times.append(time.perf_counter())

    def ours() -> float:
        times.clear()
        with TemporaryDirectory(dir=folder) as out:
            train(folder / "packed", Path(out) / "run", config, report=report)
        return case.steps * case.batch / (times[-1] - times[0])

    return ours
