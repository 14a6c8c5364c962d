"""Random crops, mirroring and colours, for a whole batch at once, on its device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

from protorect.backbones.preprocessing import to_grayscale


@dataclass(frozen=True)
class Augmentation:
    """What may happen to a picture, each drawn for itself.

    Parameters
    ----------
    crop_padding
        Pixels of black put around, of which the crop may show some.
    flip
        Whether half of the pictures are mirrored.
    smallest_scale
        The least share of the side that a crop shows; 1 for crops of the whole side.
    colour
        By how much brightness, contrast and saturation may vary.
    """

    crop_padding: int = 0
    flip: bool = False
    smallest_scale: float = 1.0
    colour: float = 0.0

    def __call__(
        self, images: Tensor, generator: torch.Generator, batch: Batch | None = None
    ) -> Tensor:
        """Images (n, channels, height, width) in 0 .. 1, augmented.

        Where they are part of a larger batch, everything is drawn for all of it: a picture fares
        the same however the batch is divided.
        """
        batch = batch or Batch(len(images), slice(None))
        if self.smallest_scale < 1:
            images = _zoomed(images, self.smallest_scale, generator, batch)
        if self.crop_padding or self.flip:
            images = _moved(images, self.crop_padding, self.flip, generator, batch)
        return _coloured(images, self.colour, generator, batch) if self.colour else images


class Batch(NamedTuple):
    """How many images a batch has, and which of them are at hand."""

    whole: int
    part: slice


def _moved(
    images: Tensor, padding: int, flip: bool, generator: torch.Generator, batch: Batch
) -> Tensor:
    """Crops at whole pixels: nothing is interpolated."""
    n, _, height, width = images.shape
    device = images.device
    corner = torch.randint(0, 2 * padding + 1, (2, batch.whole, 1), generator=generator)
    corner = corner[:, batch.part].to(device)
    down = torch.arange(height, device=device) + corner[0]  # (n, height)
    across = torch.arange(width, device=device).expand(n, width)
    if flip:
        mirrored = torch.rand(batch.whole, 1, generator=generator)[batch.part].to(device) < 0.5
        across = torch.where(mirrored, width - 1 - across, across)
    across = across + corner[1]  # (n, width)
    padded = pad(images, (padding,) * 4)
    which = torch.arange(n, device=device)[:, None, None]
    moved = padded.permute(0, 2, 3, 1)[which, down[:, :, None], across[:, None, :]]
    return moved.permute(0, 3, 1, 2)


def _zoomed(images: Tensor, smallest: float, generator: torch.Generator, batch: Batch) -> Tensor:
    """Crops of `smallest` .. 1 of the side at a random place, brought to full size."""
    n = len(images)
    size = torch.rand(batch.whole, generator=generator)[batch.part]
    where = torch.rand(batch.whole, 2, generator=generator)[batch.part]
    scale = smallest + (1 - smallest) * size
    place = (1 - scale)[:, None] * (2 * where - 1)
    turn = torch.zeros(n, 2, 3)
    turn[:, 0, 0] = turn[:, 1, 1] = scale
    turn[:, :, 2] = place
    grid = affine_grid(turn.to(images), list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def _coloured(images: Tensor, most: float, generator: torch.Generator, batch: Batch) -> Tensor:
    drawn = torch.rand(3, batch.whole, 1, 1, 1, generator=generator)[:, batch.part]
    factors = 1 + most * (2 * drawn - 1)
    bright, contrast, saturation = factors.to(images).unbind()
    images = images * bright
    dull = to_grayscale(images)
    images = dull.mean(dim=(2, 3), keepdim=True) * (1 - contrast) + images * contrast
    dull = to_grayscale(images)
    return (dull * (1 - saturation) + images * saturation).clamp(0, 1)
