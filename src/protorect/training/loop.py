"""The training loop, from top to bottom.

Everything random is drawn from the seed, the epoch and the step, never from what happened before,
so a run that was interrupted goes on to the same weights.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from protorect.backbones import Backbone, CosineClassifier, build
from protorect.checkpoint import check_fits
from protorect.data.augmentation import Augmentation
from protorect.data.catalogue import ink_is_high
from protorect.data.packed import PackedDataset, PackedSplit
from protorect.episodes import Episodes, sample_episodes
from protorect.errors import DataError
from protorect.evaluation import evaluate
from protorect.training.config import TrainingConfig
from protorect.training.embedding import Preprocessing, embed, laid_out, uses_bfloat16
from protorect.training.run import Run
from protorect.training.schedule import rate_at


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
    report, epoch_report
        Called after each step and with each epoch's line of the log.
    """
    data = PackedDataset.open(packed)
    base, run = data.split("train"), Run(Path(out))
    described = _described(data, base)
    if resume:
        run.check_same(config, described)
    else:
        run.start(config, described)

    torch.manual_seed(config.seed)
    backbone = build(config.backbone, channels=data.channels, size=data.size)
    head = CosineClassifier(backbone.dim, len(base.class_names))
    layout = torch.channels_last if config.channels_last else torch.contiguous_format
    model = nn.ModuleDict({"backbone": backbone, "head": head})
    laid_out(model, device, layout)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=config.rates[0][1],
        momentum=config.momentum,
        nesterov=config.nesterov and config.momentum > 0,
        weight_decay=config.weight_decay,
    )
    first, best = _restore(run, model, optimizer) if resume and run.last.exists() else (0, -1.0)
    log = run.epochs_logged()[:first]
    forward = torch.compile(backbone) if config.compile else backbone
    preprocessing = Preprocessing(tuple(data.mean), tuple(data.std))
    augment = _augmentation(config, data)
    episodes = _validation_episodes(data, config)
    half = uses_bfloat16(config.precision, device)
    steps = config.steps_per_epoch or max(1, len(base.labels) // config.batch_size)

    for epoch in range(first, config.epochs):
        model.train()
        torch.manual_seed(_seed(config.seed, epoch))  # for what the network itself draws
        losses, hits, seen, start = 0.0, 0, 0, time.monotonic()
        for step, rows in enumerate(_batches(len(base.labels), steps, config, epoch)):
            for group in optimizer.param_groups:
                group["lr"] = rate_at(epoch + step / steps, config.rates, config.between_rates)
            images, labels = _pictures(base, rows, device)
            images = augment(images, _generator(config.seed, epoch, step))
            images = preprocessing(images).contiguous(memory_format=layout)
            with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=half):
                logits = head(forward(images))
            loss = cross_entropy(logits.float(), labels, label_smoothing=config.label_smoothing)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()

            value = loss.item()
            if not np.isfinite(value):
                raise DataError(
                    f"the loss is {value} in epoch {epoch + 1}, step {step + 1}; "
                    "try lower learning rates (rates) or precision=float32."
                )
            losses += value * len(rows)
            hits += int((logits.argmax(dim=1) == labels).sum())
            seen += len(rows)
            speed = seen / (time.monotonic() - start)
            if report is not None:
                report(StepReport(epoch, step + 1, steps, losses / seen, 100 * hits / seen, speed))

        line = {
            "epoch": epoch + 1,
            "loss": losses / seen,
            "accuracy": 100 * hits / seen,
            "rate": optimizer.param_groups[0]["lr"],
            "images_per_second": speed,
        }
        if episodes is not None:
            held = data.split("val")
            line |= _validate(held, episodes, backbone, preprocessing, half, device)
        log.append(line)
        if epoch_report is not None:
            epoch_report(line)
        # Without validation classes the last epoch is the best we know of.
        score = line.get("validation", float(epoch))
        if score > best:
            best = score
            run.save_best(backbone.state_dict(), _card(config, data, backbone, line))
        run.write_log(log)
        run.save_last(_state(model, optimizer), {"epoch": epoch + 1, "best": best})
    return run


def _batches(
    n: int, steps: int, config: TrainingConfig, epoch: int
) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """Rows of each step: passes over all pictures in random order, one after the other."""
    rng = np.random.default_rng([config.seed, epoch])
    if config.steps_per_epoch is None:
        yield from np.array_split(rng.permutation(n), steps)
        return
    passes = -(-steps * config.batch_size // n)
    order = np.concatenate([rng.permutation(n) for _ in range(passes)])
    yield from order[: steps * config.batch_size].reshape(steps, config.batch_size)


def _pictures(
    base: PackedSplit, rows: np.ndarray[Any, Any], device: str | torch.device
) -> tuple[Tensor, Tensor]:
    """Images (n, channels, height, width) in 0 .. 1 and labels (n,)."""
    images = torch.from_numpy(np.asarray(base.images[rows])).to(device)
    labels = torch.from_numpy(np.asarray(base.labels[rows])).to(device)
    return images.permute(0, 3, 1, 2).float().div_(255), labels


def _validation_episodes(data: PackedDataset, config: TrainingConfig) -> Episodes | None:
    """5-way 5-shot episodes of the validation classes, the same after every epoch.

    Smaller ones where there are not enough classes or pictures; None where there is nothing to
    tell classes apart by.
    """
    if "val" not in data.splits:
        return None
    labels = data.split("val").labels
    _, sizes = np.unique(labels, return_counts=True)
    way, smallest = min(5, len(sizes)), int(sizes.min())
    if way < 2 or smallest < 2:
        return None
    shot = min(5, smallest - 1)
    return sample_episodes(
        labels,
        way=way,
        shot=shot,
        query=min(15, smallest - shot),
        episodes=config.validation_episodes,
        seed=config.seed,
    )


def _validate(
    held: PackedSplit,
    episodes: Episodes,
    backbone: Backbone,
    preprocessing: Preprocessing,
    half: bool,
    device: str | torch.device,
) -> dict[str, float]:
    """Few-shot accuracy on the validation classes."""
    features = embed(backbone, held.images, preprocessing, half=half, device=device)
    result = evaluate(features, held.labels, "cspn", episodes=episodes)[0]
    return {"validation": result.accuracy, "validation_ci95": result.ci95}


def _augmentation(config: TrainingConfig, data: PackedDataset) -> Augmentation:
    return Augmentation(
        crop_padding=data.crop_padding if config.crop_padding is None else config.crop_padding,
        flip=data.flip if config.flip is None else config.flip,
        smallest_scale=config.smallest_scale,
        colour=config.colour,
    )


def _seed(seed: int, *moment: int) -> int:
    return int(np.random.SeedSequence([seed, *moment]).generate_state(1, np.uint64)[0] >> 1)


def _generator(seed: int, *moment: int) -> torch.Generator:
    return torch.Generator().manual_seed(_seed(seed, *moment))


def _state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Weights and momenta by the name of the parameter."""
    momenta = {
        f"momentum.{name}": optimizer.state[parameter]["momentum_buffer"]
        for name, parameter in model.named_parameters()
        if optimizer.state[parameter].get("momentum_buffer") is not None
    }
    return {f"model.{name}": tensor for name, tensor in model.state_dict().items()} | momenta


def _restore(run: Run, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    """Bring back weights and momenta; the number of finished epochs and the best accuracy."""
    tensors, held = run.load_last()
    weights = {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")}
    check_fits(weights, model.state_dict(), f"{run.last} does not fit this run")
    model.load_state_dict(weights)
    for name, parameter in model.named_parameters():
        if f"momentum.{name}" in tensors:
            momentum = torch.empty_like(parameter).copy_(tensors[f"momentum.{name}"])
            optimizer.state[parameter]["momentum_buffer"] = momentum
    return int(held["epoch"]), float(held["best"])


def _described(data: PackedDataset, base: PackedSplit) -> dict[str, Any]:
    return {"name": data.name, "size": data.size, "channels": data.channels, "train": base.digest}


def _card(
    config: TrainingConfig, data: PackedDataset, backbone: Backbone, line: dict[str, Any]
) -> dict[str, Any]:
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
