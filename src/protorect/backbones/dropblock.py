"""Dropout of whole squares of a map.

Ghiasi et al., "DropBlock: A regularization method for convolutional networks", 2018, with the
schedule of Lee et al., "Meta-Learning with Differentiable Convex Optimization", 2019.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

WARM_UP = 40_000  # training batches until the full rate is reached


class DropBlock(nn.Module):
    """Zero random squares of every channel of a map during training, and rescale the rest.

    The fraction that is dropped grows linearly from 0 to `rate` over the first 40,000 training
    batches. Their number is a buffer, so that a checkpoint continues the schedule. A map that is
    smaller than a square of side `block` is dropped as a whole.
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
        mask = self._mask(maps.shape, maps.device)
        # Over the whole batch, so that activations have the same expected size as in evaluation.
        rescale = mask.numel() / mask.sum().clamp(min=1)
        return maps * (mask * rescale).to(maps.dtype)

    def _mask(self, shape: torch.Size, device: torch.device) -> Tensor:
        """0 where a position is dropped, 1 elsewhere, in float32."""
        side = shape[-1]
        block = min(self.block, side)
        corners = side - block + 1  # where a square may begin, along one side
        dropped_share = self.rate * (self.batches / WARM_UP).clamp(max=1)
        # gamma: the probability of a square at a corner that gives the share, overlaps neglected.
        gamma = dropped_share / block**2 * side**2 / corners**2
        seeds = (torch.rand((*shape[:-2], corners, corners), device=device) < gamma).float()
        # A position is dropped if any square that covers it was sampled.
        return 1 - F.max_pool2d(F.pad(seeds, [block - 1] * 4), kernel_size=block, stride=1)
