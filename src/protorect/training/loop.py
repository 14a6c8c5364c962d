"""The training loop, from top to bottom.

Everything random follows from the seed, the epoch and the step, never from earlier steps, so an
interrupted run that is resumed reaches the same weights.
"""

import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from protorect._utils.tensors import usable_device
from protorect.backbones.cosine_classifier import CosineClassifier
from protorect.backbones.inference import move_network, uses_bfloat16
from protorect.backbones.preprocessing import Preprocessing, resized
from protorect.backbones.registry import build
from protorect.datasets.packed import PackedDataset
from protorect.errors import DataError, OptionError
from protorect.training import schedule
from protorect.training.augmentation import Augmentation
from protorect.training.config import TrainingConfig
from protorect.training.distributed import Processes
from protorect.training.run import Run, only_writer
from protorect.training.validation import Validation

SINGLE_PROCESS = Processes()
DEFAULT_RECIPE = TrainingConfig()


@dataclass(frozen=True)
class StepReport:
    """The progress after a step; loss and accuracy (in percent) are means over the epoch so far."""

    epoch: int
    step: int
    steps: int
    loss: float
    accuracy: float
    images_per_second: float


@only_writer
def train(
    packed: str | os.PathLike[str],
    out: str | os.PathLike[str],
    config: TrainingConfig = DEFAULT_RECIPE,
    *,
    resume: bool = False,
    device: str | torch.device = "cpu",
    processes: Processes = SINGLE_PROCESS,
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
        Continue the run in `out`.
    device
        Where to compute.
    processes
        Those that train together, from `protorect.training.distributed.process_group`. All need
        access to `packed` and `out`; each computes its part of every batch, and the first
        validates and writes.
    report, epoch_report
        Called after each step, and by the first process with each epoch's line of the log.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> import protorect
    >>> scratch = tempfile.TemporaryDirectory()
    >>> folder = Path(scratch.name)
    >>> for name in ("red", "green", "blue", "black"):
    ...     (folder / "pictures" / name).mkdir(parents=True)
    ...     for number in range(3):
    ...         Image.new("RGB", (32, 32), name).save(folder / "pictures" / name / f"{number}.png")
    >>> split = (0.5, 0.0, 0.5)  # fractions of the classes in train, val and test
    >>> packed = protorect.prepare(
    ...     "folder", folder / "pictures", folder / "packed", size=28, split=split, workers=1
    ... )
    >>> config = protorect.TrainingConfig(epochs=1, batch_size=6)
    >>> protorect.train(packed.path, folder / "run", config).best.name
    'best.safetensors'
    >>> scratch.cleanup()
    """
    if not isinstance(config, TrainingConfig):
        given = type(config).__name__
        raise OptionError(
            f"config must be a TrainingConfig, as TrainingConfig(epochs=12); got {given}."
        )
    usable_device(device)
    data = PackedDataset.open(packed)
    base, run = data.split("train"), Run(Path(out))
    n = len(base.labels)
    if min(n, config.batch_size) < processes.count:
        raise OptionError(
            f"{processes.count} processes cannot share batches of {min(n, config.batch_size)} "
            "pictures; start fewer processes, or set a larger batch_size."
        )
    provenance = {"name": data.name, "size": data.size, "channels": data.channels}
    provenance["train"] = base.digest
    if "crop" in data.manifest:
        provenance["crop"] = data.manifest["crop"]
    torch.manual_seed(config.seed)
    backbone = build(config.backbone, channels=data.channels, size=data.size)
    schedule.check_sizes(config, backbone)
    if resume:
        run.check_same(config, provenance)
    elif processes.first:
        run.start(config, provenance)

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
    finished_epochs, best = 0, -1.0
    if resume and run.last.exists():
        finished_epochs, best = run.restore_last(model, optimizer)
    log = run.epochs_logged()[:finished_epochs]
    network = processes.wrap(model)
    forward = torch.compile(network) if config.compile else network

    augment = Augmentation(
        crop_padding=data.crop_padding if config.crop_padding is None else config.crop_padding,
        flip=data.flip if config.flip is None else config.flip,
        smallest_scale=config.smallest_scale,
        color=config.color,
    )
    preprocessing = Preprocessing(data.mean, data.std)
    validation = Validation.of(data, config)
    bfloat16 = uses_bfloat16(config.precision, device)
    steps = schedule.steps_per_epoch(n, config)

    for epoch in range(finished_epochs, config.epochs):
        model.train()
        backbone.size = schedule.picture_size(config, epoch, data.size)
        # For what the network itself samples, such as DropBlock.
        torch.manual_seed(schedule.derived_seed(config.seed, epoch, rank=processes.rank))
        loss_sum, correct, images_trained, start = 0.0, 0.0, 0, time.monotonic()
        for step, rows in enumerate(schedule.batch_rows(n, config, epoch)):
            rate = schedule.learning_rate(config, epoch + step / steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            images, labels = schedule.load_batch(base, rows[processes.part(len(rows))], device)
            seed = schedule.derived_seed(config.seed, epoch, step, rank=processes.rank)
            images = augment(images, torch.Generator().manual_seed(seed))
            images = resized(images, backbone.size)
            images = preprocessing(images).contiguous(memory_format=layout)
            with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=bfloat16):
                logits = forward(images)
            loss = cross_entropy(logits, labels, label_smoothing=config.label_smoothing)
            # Gradients are averaged over the processes; parts may differ in size by one image.
            share = len(labels) / len(rows)
            optimizer.zero_grad()
            torch.autograd.backward(loss * (share * processes.count))
            optimizer.step()

            correct_here = (logits.argmax(dim=1) == labels).sum().item()
            batch_loss, batch_correct = processes.sum(loss.item() * share, correct_here)
            if not math.isfinite(batch_loss):
                source = f" (resumed from {run.last}, which may be damaged)"
                raise DataError(
                    f"the loss is {batch_loss} in epoch {epoch + 1}, step {step + 1}"
                    f"{source if finished_epochs else ''}; try lower learning rates (rates) or "
                    "precision=float32."
                )
            loss_sum += batch_loss * len(rows)
            correct += batch_correct
            images_trained += len(rows)
            means = {
                "loss": loss_sum / images_trained,
                "accuracy": 100 * correct / images_trained,
                "images_per_second": images_trained / (time.monotonic() - start),
            }
            if report is not None:
                report(StepReport(epoch, step + 1, steps, **means))

        if not processes.first:
            continue  # to the next step, where it waits for the first process
        backbone.size = data.size
        line = {"epoch": epoch + 1, "rate": rate, **means}
        if validation is not None:
            line |= validation.accuracy(backbone, preprocessing, bfloat16=bfloat16, device=device)
        log.append(line)
        if epoch_report is not None:
            epoch_report(line)
        # Without validation classes the last epoch counts as the best.
        score = line.get("validation", float(epoch))
        if score > best:
            best = score
            run.save_best(backbone, head, data, config, line)
        run.write_log(log)
        run.save_last(model, optimizer, epoch + 1, best)
    return run
