"""The schedule of a training: the learning rate, the images and the random seeds of each step.

All of it follows from the configuration, the epoch and the step, never from earlier steps.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect.backbones.base import SMALLEST_SIZE, Backbone
from protorect.backbones.preprocessing import to_float
from protorect.datasets.packed import PackedSplit
from protorect.errors import OptionError
from protorect.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, epoch: float) -> float:
    """The learning rate at a fractional epoch, interpolated between the points of the recipe."""
    points = config.rates
    before = max(i for i, (start, _) in enumerate(points) if start <= epoch)
    start, rate = points[before]
    if config.between_rates == "hold" or before == len(points) - 1:
        return rate
    end, next_rate = points[before + 1]
    fraction = (epoch - start) / (end - start)
    if config.between_rates == "cosine":
        fraction = (1 - math.cos(math.pi * fraction)) / 2
    return rate + fraction * (next_rate - rate)


def picture_size(config: TrainingConfig, epoch: int, full: int) -> int:
    """The side to which the pictures of an epoch are reduced; `full` is that of the data set."""
    sides = [side for start, side in config.sizes if start <= epoch]
    return sides[-1] if sides else full


def check_sizes(config: TrainingConfig, backbone: Backbone) -> None:
    """Raise OptionError if the sizes of the recipe do not fit the network."""
    sides = [side for _, side in config.sizes]
    if sides and not backbone.averages:
        raise OptionError(
            f"{backbone.name} takes pictures of one size only, so sizes must be empty; it works "
            "with networks that average their last map, such as resnet12."
        )
    if sides and not (min(sides) >= SMALLEST_SIZE and max(sides) == sides[-1] == backbone.size):
        raise OptionError(
            f"sizes has the sides {', '.join(map(str, sides))}; they must be {SMALLEST_SIZE} or "
            f"more, and the last and largest {backbone.size}, the side of the packed pictures."
        )


def steps_per_epoch(n: int, config: TrainingConfig) -> int:
    """The number of steps in an epoch over n images."""
    return config.steps_per_epoch or max(1, n // config.batch_size)


def batch_rows(n: int, config: TrainingConfig, epoch: int) -> Iterator[NDArray[np.int64]]:
    """Give the rows of each step, in random order.

    By default the n images are divided evenly among n // batch_size steps, so none is left out and
    a batch has between batch_size and nearly twice as many: 511 images with a batch_size of 256 are
    one batch of 511, and fewer images than batch_size are one batch, too. With `steps_per_epoch`,
    each batch has exactly batch_size images, from as many passes over all images as needed.
    """
    rng = np.random.default_rng([config.seed, epoch])
    steps = steps_per_epoch(n, config)
    if config.steps_per_epoch is None:
        yield from np.array_split(rng.permutation(n), steps)
        return
    passes = -(-steps * config.batch_size // n)
    order = np.concatenate([rng.permutation(n) for _ in range(passes)])
    yield from order[: steps * config.batch_size].reshape(steps, config.batch_size)


def load_batch(
    base: PackedSplit, rows: NDArray[Any], device: str | torch.device
) -> tuple[Tensor, Tensor]:
    """Images (n, channels, height, width) in 0 .. 1 and labels (n,)."""
    images = torch.from_numpy(np.asarray(base.images[rows])).to(device)
    labels = torch.from_numpy(np.asarray(base.labels[rows])).to(device)
    return to_float(images), labels


def derived_seed(seed: int, *position: int, rank: int = 0) -> int:
    """A seed for (epoch,) or (epoch, step) in process `rank`; rank 0 as a single process."""
    sequence = np.random.SeedSequence([seed, *position], spawn_key=(rank,) if rank else ())
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)
