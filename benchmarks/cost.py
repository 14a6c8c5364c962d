"""`python -m benchmarks.cost`: what the training of each network costs; writes results/cost.json.

Pictures per second of one core's time, of the bare training step with one thread: other work on the
machine does not count.
"""

from __future__ import annotations

import json
import time
from typing import Any

import torch

from benchmarks.documents import RESULTS, load_results
from benchmarks.network import NetworkCase, bare_training
from benchmarks.trainings import write_trainings
from protorect._utils.files import write_text
from protorect._utils.versions import versions
from protorect.backbones.inference import uses_bfloat16
from protorect.paper.texts import BACKBONES
from protorect.report.table import Table

PASS = 38_400  # pictures of the base classes of miniImageNet
EPOCHS = 60  # of the paper
CASES = {
    **{(name, 84): (64, 3) for name in ("conv64", "conv128", "conv256")},
    **{("resnet12", size): (32, 2) for size in (42, 64, 84)},
    ("wrn28-10", 84): (8, 1),
}


def main() -> None:
    """Measure all networks, and write their table in docs/trainings.md."""
    torch.set_num_threads(1)
    rates = [
        {"backbone": name, "size": size, "pictures_per_core_second": rate(name, size, *case)}
        for (name, size), case in CASES.items()
    ]
    result = {"networks": rates, "bfloat16": uses_bfloat16("auto"), "versions": versions()}
    write_text(RESULTS / "cost.json", json.dumps(result, indent=1) + "\n")
    write_trainings()


def rate(name: str, size: int, batch: int, steps: int) -> float:
    """Pictures per second of processor time, the better of two rounds after a first."""
    case = NetworkCase(size, 3, batch, 8, True, steps, name)
    step = bare_training(case, uses_bfloat16("auto"), time.process_time)
    step()
    return max(step(), step())


def cost_table() -> Table:
    """Rates, and the time of one core for the base classes of miniImageNet."""
    measured: dict[str, Any] = load_results("cost")
    rows = []
    for one in measured["networks"]:
        hours = PASS / one["pictures_per_core_second"] / 3600
        paper = f"{EPOCHS * hours / 24:,.1f} days" if one["size"] == 84 else ""
        rows.append(
            [
                BACKBONES[one["backbone"]],
                str(one["size"]),
                f"{one['pictures_per_core_second']:.3g}",
                f"{hours:.2g} h",
                paper,
            ]
        )
    header = ["network", "side", "pictures/s", f"one pass, {PASS:,}", f"{EPOCHS} passes"]
    precision = "bfloat16" if measured["bfloat16"] else "float32"
    return Table(f"Time of one core, {precision}.", header, rows)


if __name__ == "__main__":
    main()
