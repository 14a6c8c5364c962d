"""Which pictures each step sees.

Everything random follows from the seed, the epoch and the step, never from what happened before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect.backbones.preprocessing import to_float
from protorect.datasets.packed import PackedSplit
from protorect.training.config import TrainingConfig


def steps_of_epoch(n: int, config: TrainingConfig) -> int:
    """How many steps an epoch over n pictures has."""
    return config.steps_per_epoch or max(1, n // config.batch_size)


def batch_rows(n: int, config: TrainingConfig, epoch: int) -> Iterator[NDArray[np.int64]]:
    """Rows of each step: passes over all n pictures in random order, one after the other."""
    rng = np.random.default_rng([config.seed, epoch])
    steps = steps_of_epoch(n, config)
    if config.steps_per_epoch is None:
        yield from np.array_split(rng.permutation(n), steps)
        return
    passes = -(-steps * config.batch_size // n)
    order = np.concatenate([rng.permutation(n) for _ in range(passes)])
    yield from order[: steps * config.batch_size].reshape(steps, config.batch_size)


def pictures(
    base: PackedSplit, rows: NDArray[Any], device: str | torch.device
) -> tuple[Tensor, Tensor]:
    """Images (n, channels, height, width) in 0 .. 1 and labels (n,)."""
    images = torch.from_numpy(np.asarray(base.images[rows])).to(device)
    labels = torch.from_numpy(np.asarray(base.labels[rows])).to(device)
    return to_float(images), labels


def seed_of(seed: int, *moment: int) -> int:
    """A seed for a moment of the training, such as (epoch, step)."""
    return int(np.random.SeedSequence([seed, *moment]).generate_state(1, np.uint64)[0] >> 1)


def generator_of(seed: int, *moment: int) -> torch.Generator:
    """A generator for a moment of the training."""
    return torch.Generator().manual_seed(seed_of(seed, *moment))
