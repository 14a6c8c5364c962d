"""Layers that look at a whole batch, where each process has a part of it.

Batch norm takes the mean and variance of all pictures of a step, DropBlock rescales by how much of
all maps it dropped. The layers here do so over all processes, so that dividing a batch changes
nothing but the rounding. torch's own SyncBatchNorm is for accelerators only.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from protorect.backbones.dropblock import DropBlock


def look_at_whole_batches(model: nn.Module) -> None:
    """Make every batch norm and DropBlock of a model one of those below."""
    for module in model.modules():
        # Another class and not another module: parameters, buffers and options stay what they are.
        if type(module) is nn.BatchNorm2d:
            module.__class__ = WholeBatchNorm2d
        elif type(module) is DropBlock:
            module.__class__ = WholeDropBlock


class WholeBatchNorm2d(nn.BatchNorm2d):
    """Batch norm by the statistics of all parts of a batch."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002, torch's name
        """Maps (n, width, height, width) normalised."""
        if not self.training:
            return super().forward(input)
        wide = input.to(torch.promote_types(input.dtype, torch.float32))
        variance, mean = torch.var_mean(wide, dim=(0, 2, 3), correction=0)
        here = torch.full_like(mean, input.numel() / len(mean))
        numbers, means, variances = of_every_process(torch.stack([here, mean, variance])).unbind(1)
        total = numbers.sum(dim=0)
        share = numbers / total  # (processes, width)
        mean = (share * means).sum(dim=0)
        # Within the parts and between them, which does not cancel as squares less a square would.
        variance = (share * (variances + (means - mean) ** 2)).sum(dim=0)
        self._remember(mean, variance * total / (total - 1))
        scale = self.weight * torch.rsqrt(variance + self.eps)
        shift = self.bias - mean * scale
        normalised = wide * scale[:, None, None] + shift[:, None, None]
        return normalised.to(input.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        """Move what evaluation uses towards the statistics of this batch."""
        if self.running_mean is None or self.running_var is None or self.momentum is None:
            return
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), self.momentum)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)


class WholeDropBlock(DropBlock):
    """DropBlock that draws for the whole batch and uses what falls on this part."""

    def factors(self, shape: torch.Size, device: torch.device) -> Tensor:
        """What the maps of this part are multiplied with."""
        sizes = of_every_process(torch.tensor(shape[0], device=device)).tolist()
        before = sum(sizes[: dist.get_rank()])
        whole = super().factors(torch.Size((sum(sizes), *shape[1:])), device)
        return whole[before : before + shape[0]]


def of_every_process(values: Tensor) -> Tensor:
    """Values (...) that each process has for itself, as (processes, ...); differentiable."""
    table = values.new_zeros(dist.get_world_size(), *values.shape)
    table[dist.get_rank()] = values
    summed: Tensor = _Sum.apply(table)  # type: ignore[no-untyped-call]
    return summed


class _Sum(torch.autograd.Function):
    """The sum over all processes. All use it, so its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        summed = values.clone()
        dist.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        summed = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(summed)
        return summed
