"""`protorect train`: a backbone with a cosine classifier on the base classes of a data set."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from protorect.training import TrainingConfig
    from protorect.training.loop import StepReport

    Step = Callable[[StepReport], None]
    Epoch = Callable[[dict[str, Any]], None]

DESCRIPTION = """\
Train a backbone with a cosine classifier on the base classes, as the paper does.

PACKED is what `protorect prepare` made. Settings come from the defaults (the paper's recipe), a
TOML file and --set; later ones override earlier ones. --resume continues an interrupted run and
reaches the same weights.

Several processes or machines share every batch when torchrun starts them, on CUDA one device each:
  torchrun --nproc-per-node 2 -m protorect train PACKED --out RUN --device cuda
All need access to PACKED and RUN. Each process augments its own part of the batch. BatchNorm uses
the whole batch on CUDA and each process's part on CPU; DropBlock uses each process's part.
"""


def add_to(verbs: Any) -> None:
    """Add this verb to the parser."""
    parser = verbs.add_parser(
        "train",
        help="train a backbone on the base classes of a data set",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("packed", metavar="PACKED", type=Path)
    add("--backbone", metavar="NAME", help="conv64, conv128, conv256, resnet12, wrn28-10 (conv64)")
    add("--out", type=Path, required=True, metavar="RUN", help="the folder of the run")
    add("--config", type=Path, metavar="F.toml", help="settings")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; repeat")
    add("--resume", action="store_true", help="go on with the run in RUN")
    add("--tensorboard", action="store_true", help="also write event files, into RUN/tensorboard")
    add("--device", default="cpu", help="where to compute, as torch names it (cpu)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Train, and print how each epoch went."""
    from protorect.training import read_config, train
    from protorect.training.config import updated
    from protorect.training.distributed import process_group

    with process_group(options.device) as (processes, device):
        config = read_config(options.config, options.set)
        if options.backbone is not None:
            config = updated(config, {"backbone": options.backbone})
        told = _told(config, options) if processes.first else nullcontext((None, None))
        with told as (step, epoch):
            finished = train(
                options.packed,
                options.out,
                config,
                resume=options.resume,
                device=device,
                processes=processes,
                report=step,
                epoch_report=epoch,
            )
        if processes.first:
            print(finished.best)


@contextmanager
def _told(config: TrainingConfig, options: argparse.Namespace) -> Iterator[tuple[Step, Epoch]]:
    """What is called after a step and after an epoch: the screen, and TensorBoard if asked for."""
    if not options.tensorboard:
        with training_shown(config.epochs) as shown:
            yield shown
        return
    from protorect.training.tensorboard import event_files

    with (
        event_files(options.out / "tensorboard", config) as record,
        training_shown(config.epochs) as (step, show),
    ):

        def epoch(line: dict[str, Any]) -> None:
            show(line)
            record(line)

        yield step, epoch


@contextmanager
def training_shown(epochs: int) -> Iterator[tuple[Step, Epoch]]:
    """A bar on a terminal for the steps, a line for each epoch."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("training", total=None)

        def step(report: StepReport) -> None:
            text = (
                f"epoch {report.epoch + 1}/{epochs}  loss {report.loss:.3f}  "
                f"accuracy {report.accuracy:.1f} %  {report.images_per_second:.0f} images/s"
            )
            done = report.epoch * report.steps + report.step
            bar.update(task, completed=done, total=epochs * report.steps, description=text)

        def epoch(line: dict[str, Any]) -> None:
            checked = ""
            if "validation" in line:
                checked = f"validation {line['validation']:.2f} ± {line['validation_ci95']:.2f} %, "
            console.print(
                f"epoch {line['epoch']}/{epochs}: loss {line['loss']:.3f}, "
                f"accuracy {line['accuracy']:.1f} %, {checked}"
                f"{line['images_per_second']:.0f} images/s",
                highlight=False,
                soft_wrap=True,  # a line an epoch, however narrow the screen
            )

        yield step, epoch
