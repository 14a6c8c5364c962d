"""Dropout of whole squares of a map.

Ghiasi et al., "DropBlock: A regularization method for convolutional networks", 2018, with the
schedule of Lee et al., "Meta-Learning with Differentiable Convex Optimization", 2019.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

WARM_UP = 40_000  # training batches until the full rate is reached


class DropBlock(nn.Module):
    """Zeroes random squares of every channel of a map while training, and rescales the rest.

    The share that is dropped grows in a straight line from 0 to `rate` over the first 40,000
    training batches. How many there were is a buffer, so a checkpoint continues where it was.

    Parameters
    ----------
    rate
        The share of a map that is dropped in the end.
    block
        Side of the squares; a smaller map is dropped as a whole.
    """

    batches: Tensor

    def __init__(self, rate: float = 0.1, block: int = 5) -> None:
        super().__init__()
        self.rate = rate
        self.block = block
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, width, side, side) with squares dropped, if training."""
        if not self.training:
            return maps
        self.batches += 1
        return maps * self.factors(maps.shape, maps.device).to(maps.dtype)

    def factors(self, shape: torch.Size, device: torch.device) -> Tensor:
        """What maps (n, width, side, side) of a batch are multiplied with, in float32."""
        kept = self._kept(shape, device)
        # Over the whole batch, so the expected size of a feature is that of evaluation.
        rescale = kept.numel() / kept.sum().clamp(min=1)
        return kept * rescale

    def _kept(self, shape: torch.Size, device: torch.device) -> Tensor:
        """Which positions stay, 0 or 1 in float32."""
        side = shape[-1]
        block = min(self.block, side)
        corners = side - block + 1  # where a square may begin, along one side
        dropped_share = self.rate * (self.batches / WARM_UP).clamp(max=1)
        # gamma: the chance of a square at a corner that gives the share, overlaps neglected.
        gamma = dropped_share / block**2 * side**2 / corners**2
        drawn = torch.rand((*shape[:-2], corners, corners), device=device)
        seeds = (drawn < gamma).float()
        # A position is dropped if any square that covers it was drawn.
        return 1 - F.max_pool2d(F.pad(seeds, [block - 1] * 4), kernel_size=block, stride=1)
