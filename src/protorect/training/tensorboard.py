"""The log of a run as event files for TensorBoard."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from protorect.errors import MissingExtraError
from protorect.training.config import TrainingConfig


@contextmanager
def event_files(folder: Path, config: TrainingConfig) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Give a function to call with each epoch's line of the log.

    Nothing is written before the first line. An epoch that is repeated after an interruption
    replaces the events of that epoch and of later ones.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError(
            "--tensorboard needs another package: pip install 'protorect[tensorboard]'"
        ) from error
    writer: Any = None

    def write(line: dict[str, Any]) -> None:
        nonlocal writer
        epoch = line["epoch"]
        if writer is None:
            writer = SummaryWriter(str(folder), purge_step=epoch)
            writer.add_text("configuration", _as_markdown(asdict(config)))
        for name in line.keys() - {"epoch"}:
            writer.add_scalar(name, line[name], epoch)
        writer.flush()

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _as_markdown(values: dict[str, Any]) -> str:
    rows = [f"| {name} | {json.dumps(value)} |" for name, value in values.items()]
    return "\n".join(["| setting | value |", "|---|---|", *rows])
