"""Weights and images by integer arithmetic: the same numbers on every machine."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor, nn

PRIME = 1_000_003


@cache
def _quadratic() -> Tensor:
    i = torch.arange(PRIME)
    return (48271 * i * i + 69621 * i) % PRIME


def pseudo_random(shape: tuple[int, ...], seed: int) -> Tensor:
    """Numbers in -0.5 .. 0.5, float64; they repeat after a million."""
    count = math.prod(shape)
    residue = (_quadratic()[:count] + 16807 * (seed + 1)) % PRIME
    numbers = residue.double() / PRIME - 0.5
    if count > PRIME:
        numbers = numbers.repeat(-(-count // PRIME))[:count]
    return numbers.reshape(shape)


def images(count: int, channels: int, size: int) -> Tensor:
    """Images (count, channels, size, size), pixels in 0 .. 1."""
    return pseudo_random((count, channels, size, size), seed=10_007) + 0.5


def weights(network: nn.Module) -> dict[str, Tensor]:
    """A state of the network: convolutions that preserve the variance, uneven batch norms."""
    state = {}
    for number, (name, value) in enumerate(network.state_dict().items()):
        u = pseudo_random(tuple(value.shape), number)
        if value.ndim == 4:
            fan_in = math.prod(value.shape[1:])
            state[name] = u * math.sqrt(24 / fan_in)  # a variance of 2 / fan_in
        elif not value.is_floating_point():
            state[name] = value.clone()
        else:
            state[name] = 1 + u if name.endswith(("weight", "running_var")) else u
    return state
