"""`python -m benchmarks.trainings RUN...`: save the logs of training runs.

Writes results/training/NAME.json for every run folder named, and the table of docs/trainings.md
from all that are there. Without a run, only the table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.documents import DOCS, RESULTS, fill
from protorect._utils.files import write_text
from protorect._utils.parameters import format_value
from protorect.report.table import Table
from protorect.training.config import TrainingConfig

LOGS = RESULTS / "training"
DOCUMENT = DOCS / "trainings.md"


def main() -> None:
    """Save the logs of the named runs, and write the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path)
    for run in parser.parse_args().runs:
        write_text(LOGS / f"{run.name}.json", json.dumps(run_record(run), indent=1) + "\n")
    write_trainings()


def write_trainings() -> None:
    """Write the table of docs/trainings.md from the logs in results/training."""
    write_text(DOCUMENT, trainings_document())


def trainings_document() -> str:
    """The text of docs/trainings.md with the tables of all logs, all settings and the cost."""
    from benchmarks.cost import cost_table

    paths = sorted(LOGS.glob("*.json"), key=lambda path: path.stem)
    rows = [_row(path.stem, json.loads(path.read_text())) for path in paths]
    columns = ["epochs", "batch", "rates", "decay", "pictures", "best", "base", "validation"]
    table = Table("", ["training", "data", *columns], rows)
    regions = {"trainings": table, "settings": settings_table(), "cost": cost_table()}
    return fill(DOCUMENT.read_text(encoding="utf-8"), regions)


def settings_table() -> str:
    """The settings of a recipe as a Markdown table, from their description."""
    rows = [
        f"| `{one.name}` | {format_value(one.default)} | {one.constraint.allowed} "
        f"| {one.description} |"
        for one in TrainingConfig.parameters()
    ]
    return "\n".join(["| setting | default | allowed | meaning |", "|---|---|---|---|", *rows])


def run_record(run: Path) -> dict[str, Any]:
    """Configuration, data, versions and log of a run folder."""
    record = json.loads((run / "run.json").read_text())
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return {**{part: record[part] for part in ("config", "data", "versions")}, "log": log}


def _row(name: str, training: dict[str, Any]) -> list[str]:
    config, log = TrainingConfig().updated(training["config"]), training["log"]
    best = max(log, key=lambda epoch: float(epoch["validation"]))
    stopped = "" if len(log) == config.epochs else f"{len(log)} of "
    return [
        f"`{name}`",
        training["data"]["name"],
        f"{stopped}{config.epochs}",
        str(config.batch_size),
        " ".join(f"{epoch:g}:{rate:g}" for epoch, rate in config.rates),
        f"{config.weight_decay:g}",
        _augmentation(config),
        str(best["epoch"]),
        f"{best['accuracy']:.1f}",
        f"{best['validation']:.2f} ± {best['validation_ci95']:.2f}",
    ]


def _augmentation(config: TrainingConfig) -> str:
    """What is done to pictures and labels beyond the default of the data set."""
    parts = ["default"]
    if config.smallest_scale < 1:
        parts.append(f"scale from {config.smallest_scale:g}")
    if config.color:
        parts.append(f"color {config.color:g}")
    if config.label_smoothing:
        parts.append(f"label smoothing {config.label_smoothing:g}")
    return ", ".join(parts)


if __name__ == "__main__":
    main()
