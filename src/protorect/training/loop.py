"""The training loop, from top to bottom.

Everything random is drawn from the seed, the epoch and the step, never from what happened before,
so a run that was interrupted goes on to the same weights.
"""

from __future__ import annotations

import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from protorect.backbones.cosine_classifier import CosineClassifier
from protorect.backbones.inference import move_network, uses_bfloat16
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.registry import build
from protorect.datasets.catalogue import ink_is_high
from protorect.datasets.packed import PackedDataset, PackedSplit
from protorect.errors import DataError, OptionError
from protorect.training.augmentation import Augmentation, Batch
from protorect.training.batches import batch_rows, generator_of, pictures, seed_of, steps_of_epoch
from protorect.training.config import TrainingConfig
from protorect.training.distributed import Processes
from protorect.training.run import Run
from protorect.training.schedule import rate_at
from protorect.training.validation import Validation

ALONE = Processes()


@dataclass(frozen=True)
class StepReport:
    """How the training goes, after a step."""

    epoch: int
    step: int
    steps: int
    loss: float
    accuracy: float
    images_per_second: float


def train(
    packed: str | os.PathLike[str],
    out: str | os.PathLike[str],
    config: TrainingConfig,
    *,
    resume: bool = False,
    device: str | torch.device = "cpu",
    processes: Processes = ALONE,
    report: Callable[[StepReport], None] | None = None,
    epoch_report: Callable[[dict[str, Any]], None] | None = None,
) -> Run:
    """Train a backbone with a cosine classifier on the base classes, eq. (1) and (2).

    Parameters
    ----------
    packed
        The folder that `protorect prepare` made.
    out
        The folder of the run.
    config
        The recipe.
    resume
        Go on with the run in `out`.
    device
        Where to compute.
    processes
        Those that train together, from `protorect.training.distributed.joined`. All see `packed`
        and `out`; each computes its part of every batch, and the first validates and writes.
    report, epoch_report
        Called after each step, and by the first process with each epoch's line of the log.
    """
    data = PackedDataset.open(packed)
    base, run = data.split("train"), Run(Path(out))
    n = len(base.labels)
    _check_enough_for_all(min(n, config.batch_size), processes)
    if resume:
        run.check_same(config, _described(data, base))
    elif processes.first:
        run.start(config, _described(data, base))

    torch.manual_seed(config.seed)
    backbone = build(config.backbone, channels=data.channels, size=data.size)
    head = CosineClassifier(backbone.dim, len(base.class_names))
    model = nn.Sequential(OrderedDict(backbone=backbone, head=head))
    layout = torch.channels_last if config.channels_last else torch.contiguous_format
    move_network(model, device, layout)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=config.rates[0][1],
        momentum=config.momentum,
        nesterov=config.nesterov and config.momentum > 0,
        weight_decay=config.weight_decay,
    )
    done, best = 0, -1.0
    if resume and run.last.exists():
        done, best = run.restore_last(model, optimizer)
    log = run.epochs_logged()[:done]
    network = processes.shared(model)
    forward = torch.compile(network) if config.compile else network

    augment = _augmentation(config, data)
    preprocessing = Preprocessing(tuple(data.mean), tuple(data.std))
    validation = Validation.of(data, config)
    half = uses_bfloat16(config.precision, device)
    steps = steps_of_epoch(n, config)

    for epoch in range(done, config.epochs):
        model.train()
        torch.manual_seed(seed_of(config.seed, epoch))  # for what the network itself draws
        tally = _Tally()
        for step, rows in enumerate(batch_rows(n, config, epoch)):
            rate = rate_at(epoch + step / steps, config.rates, config.between_rates)
            for group in optimizer.param_groups:
                group["lr"] = rate
            part = processes.part(len(rows))
            images, labels = pictures(base, rows[part], device)
            generator = generator_of(config.seed, epoch, step)
            images = augment(images, generator, Batch(len(rows), part))
            images = preprocessing(images).contiguous(memory_format=layout)
            with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=half):
                logits = forward(images)
            loss = cross_entropy(logits, labels, label_smoothing=config.label_smoothing)
            loss = loss * (len(labels) / len(rows))  # what this process adds to the batch's mean
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()

            hits = (logits.argmax(dim=1) == labels).sum()
            whole_loss, whole_hits = processes.summed(loss.item(), hits.item())
            if not math.isfinite(whole_loss):
                raise DataError(
                    f"the loss is {whole_loss} in epoch {epoch + 1}, step {step + 1}; "
                    "try lower learning rates (rates) or precision=float32."
                )
            tally.add(whole_loss, whole_hits, len(rows))
            if report is not None:
                report(StepReport(epoch, step + 1, steps, **tally.figures()))

        if not processes.first:
            continue  # to the next step, where it waits for the first
        line = {"epoch": epoch + 1, "rate": rate, **tally.figures()}
        if validation is not None:
            line |= validation.accuracy(backbone, preprocessing, half=half, device=device)
        log.append(line)
        if epoch_report is not None:
            epoch_report(line)
        # Without validation classes the last epoch is the best we know of.
        score = line.get("validation", float(epoch))
        if score > best:
            best = score
            run.save_best(backbone.state_dict(), _card(config, data, line))
        run.write_log(log)
        run.save_last(model, optimizer, epoch + 1, best)
    return run


@dataclass
class _Tally:
    """What happened since the epoch began."""

    loss: float = 0.0
    hits: float = 0.0
    seen: int = 0
    start: float = field(default_factory=time.monotonic)

    def add(self, loss: float, hits: float, n: int) -> None:
        """Count a batch of n pictures with this mean loss."""
        self.loss += loss * n
        self.hits += hits
        self.seen += n

    def figures(self) -> dict[str, float]:
        """Mean loss, accuracy in percent, pictures a second."""
        return {
            "loss": self.loss / self.seen,
            "accuracy": 100 * self.hits / self.seen,
            "images_per_second": self.seen / (time.monotonic() - self.start),
        }


def _check_enough_for_all(smallest_batch: int, processes: Processes) -> None:
    if smallest_batch < processes.count:
        raise OptionError(
            f"{processes.count} processes cannot share batches of {smallest_batch} pictures; start "
            "fewer processes, or set a larger batch_size."
        )


def _described(data: PackedDataset, base: PackedSplit) -> dict[str, Any]:
    return {"name": data.name, "size": data.size, "channels": data.channels, "train": base.digest}


def _augmentation(config: TrainingConfig, data: PackedDataset) -> Augmentation:
    return Augmentation(
        crop_padding=data.crop_padding if config.crop_padding is None else config.crop_padding,
        flip=data.flip if config.flip is None else config.flip,
        smallest_scale=config.smallest_scale,
        colour=config.colour,
    )


def _card(config: TrainingConfig, data: PackedDataset, line: dict[str, Any]) -> dict[str, Any]:
    """What a user of the weights needs to know."""
    return {
        "backbone": config.backbone,
        "channels": data.channels,
        "size": data.size,
        "mean": [float(value) for value in data.mean],
        "std": [float(value) for value in data.std],
        "ink_high": ink_is_high(data.name),
        "data": data.name,
        "epoch": line["epoch"],
        "validation": line.get("validation"),
        "config": asdict(config),
    }
