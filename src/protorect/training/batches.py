"""The images of each training step, and the seeds of everything random in it.

Everything random follows from the seed, the epoch and the step, never from earlier steps.
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


def steps_per_epoch(n: int, config: TrainingConfig) -> int:
    """The number of steps in an epoch over n images."""
    return config.steps_per_epoch or max(1, n // config.batch_size)


def batch_rows(n: int, config: TrainingConfig, epoch: int) -> Iterator[NDArray[np.int64]]:
    """Give the rows of each step: as many passes over all n images in random order as needed."""
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
    """A seed for a position in the training, (epoch,) or (epoch, step), in process `rank`.

    The first process has the seeds that a single process has.
    """
    sequence = np.random.SeedSequence([seed, *position], spawn_key=(rank,) if rank else ())
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)
