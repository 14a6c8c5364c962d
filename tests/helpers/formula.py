"""Weights and pictures made by arithmetic on whole numbers, the same on every machine."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

PRIME = 1_000_003


def spread(shape: tuple[int, ...], number: int) -> Tensor:
    """Numbers in -0.5 .. 0.5, float64; another `number` gives others."""
    i = torch.arange(math.prod(shape)) % PRIME
    residue = (48271 * i * i + 69621 * i + 16807 * (number + 1)) % PRIME
    return (residue.double() / PRIME - 0.5).reshape(shape)


def pictures(count: int, channels: int, size: int) -> Tensor:
    """Pictures (count, channels, size, size), pixels in 0 .. 1."""
    return spread((count, channels, size, size), number=10_007) + 0.5


def weights(network: nn.Module) -> dict[str, Tensor]:
    """A state for the network: convolutions that keep the size of a signal, uneven batch norms."""
    state = {}
    for number, (name, held) in enumerate(network.state_dict().items()):
        u = spread(tuple(held.shape), number)
        if held.ndim == 4:
            fan_in = math.prod(held.shape[1:])
            state[name] = u * math.sqrt(24 / fan_in)  # a variance of 2 / fan_in
        elif not held.is_floating_point():
            state[name] = held.clone()
        else:
            state[name] = 1 + u if name.endswith(("weight", "running_var")) else u
    return state
