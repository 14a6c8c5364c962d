"""`python -m benchmarks.trainings RUN...`: keep the logs of runs, and say what was tried.

Writes results/training/NAME.json for every run folder given, and docs/trainings.md from all that
are kept there. Without a run, only the page.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from protorect._utils.files import write_text

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "results" / "training"
PAGE = ROOT / "docs" / "trainings.md"
TEXT = """\
# Trainings

Made by `python -m benchmarks.trainings RUN...` from the logs in `results/training`; do not edit. \
Each row is one training, with the best validation accuracy of its epochs (5-way 5-shot, 300 \
episodes of the validation classes, 95 % interval). Recipes were chosen by it, without a look at \
the test classes; a training that was clearly behind was ended early. *Base* is the accuracy on \
the training pictures in that epoch, as augmented. All with momentum 0.9 and Nesterov's step; \
rates as epoch:rate, in straight lines between. *As usual* is what `protorect train` does by \
default: on CUB crops after padding by 8 and mirroring, on Omniglot nothing. A scale below 1 \
replaces the padding by crops of that part of the side or more.

| training | data | epochs | batch | rates | decay | pictures | best | base | validation |
|---|---|---:|---:|---|---:|---|---:|---:|---:|
{rows}
What the test classes then say is in [results.md](results.md).
"""
ROW = (
    "| `{name}` | {data} | {epochs} | {batch_size} | {rates} | {weight_decay:g} | {pictures} | "
    "{epoch} | {base:.1f} | {validation:.2f} ± {ci95:.2f} |\n"
)


def main() -> None:
    """Keep the runs given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path)
    for run in parser.parse_args().runs:
        write_text(KEPT / f"{run.name}.json", json.dumps(kept(run), indent=1) + "\n")
    write_text(PAGE, trainings_page(all_kept()))


def kept(run: Path) -> dict[str, Any]:
    """What a run folder says of the training: its configuration, data, versions and log."""
    held = json.loads((run / "run.json").read_text())
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return {**{part: held[part] for part in ("config", "data", "versions")}, "log": log}


def all_kept() -> dict[str, Any]:
    """Every training kept, by name."""
    paths = sorted(KEPT.glob("*.json"), key=lambda path: path.stem)
    return {path.stem: json.loads(path.read_text()) for path in paths}


def trainings_page(trainings: dict[str, Any]) -> str:
    """The page in Markdown."""
    return TEXT.format(rows="".join(_row(name, one) for name, one in trainings.items()))


def _row(name: str, training: dict[str, Any]) -> str:
    config = training["config"]
    best = max(training["log"], key=lambda epoch: float(epoch["validation"]))
    return ROW.format(
        name=name,
        data=training["data"]["name"],
        epochs=_epochs(len(training["log"]), config["epochs"]),
        batch_size=config["batch_size"],
        rates=" ".join(f"{epoch:g}:{rate:g}" for epoch, rate in config["rates"]),
        weight_decay=config["weight_decay"],
        pictures=_pictures(config),
        epoch=best["epoch"],
        base=best["accuracy"],
        validation=best["validation"],
        ci95=best["validation_ci95"],
    )


def _epochs(done: int, planned: int) -> str:
    return f"{planned}" if done == planned else f"{done} of {planned}"


def _pictures(config: dict[str, Any]) -> str:
    """What is done to the pictures and their labels, as far as it is not what the data asks for."""
    done = ["as usual"]
    if config["smallest_scale"] < 1:
        done.append(f"scale from {config['smallest_scale']:g}")
    if config["colour"]:
        done.append(f"colour {config['colour']:g}")
    if config["label_smoothing"]:
        done.append(f"smoothed labels {config['label_smoothing']:g}")
    return ", ".join(done)


if __name__ == "__main__":
    main()
