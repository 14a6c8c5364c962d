"""Train a backbone with a cosine classifier on the base classes, as the paper does.

PACKED is a folder that `protorect prepare` made. Settings, listed below, come from the defaults
(what the paper states, our choice where it is silent), then a TOML file, then --set; the last one
counts. --resume continues an interrupted run and reaches the same weights as without the
interruption.

To split every batch over several processes or machines (on CUDA, one device each), use torchrun:
  torchrun --nproc-per-node 2 -m protorect train PACKED --out RUN --device cuda
All need access to PACKED and RUN. Each process augments its own part of the batch. BatchNorm uses
the whole batch on CUDA and each process's part on CPU; DropBlock uses each process's part.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from protorect.cli.arguments import add_parameters, given, parameters_text
from protorect.cli.progress import training_progress
from protorect.training.config import TrainingConfig, read_config
from protorect.training.distributed import process_group
from protorect.training.loop import train
from protorect.training.tensorboard import event_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("packed", metavar="PACKED", type=Path)
    add_parameters(parser, TrainingConfig, "backbone")
    add("--out", type=Path, required=True, metavar="RUN", help="the folder of the run")
    add("--config", type=Path, metavar="F.toml", help="TOML file of settings")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; repeatable")
    parser.epilog = f"settings:\n{parameters_text(TrainingConfig)}"
    add("--resume", action="store_true", help="continue the run in RUN")
    add("--tensorboard", action="store_true", help="also write event files, into RUN/tensorboard")
    add("--device", default="cpu", help="where to compute, as a torch device (cpu)")


def run(options: argparse.Namespace) -> None:
    """Train, print loss and accuracy of each epoch, and finally the path of the best weights."""
    with process_group(options.device) as (processes, device), ExitStack() as stack:
        config = read_config(options.config, options.set)
        config = config.updated(given(options, TrainingConfig))
        step_report, epoch_reports = None, []
        if processes.first:
            step_report, print_epoch = stack.enter_context(training_progress(config.epochs))
            epoch_reports.append(print_epoch)
        if processes.first and options.tensorboard:
            events = event_files(options.out / "tensorboard", config)
            epoch_reports.append(stack.enter_context(events))

        def epoch_report(line: dict[str, Any]) -> None:
            for report in epoch_reports:
                report(line)

        finished = train(
            options.packed,
            options.out,
            config,
            resume=options.resume,
            device=device,
            processes=processes,
            report=step_report,
            epoch_report=epoch_report,
        )
        if processes.first:
            print(finished.best)
