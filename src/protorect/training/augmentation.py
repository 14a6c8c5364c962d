"""Random crops, mirroring and color changes of a whole batch, on its device."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

from protorect.backbones.preprocessing import to_grayscale


@dataclass(frozen=True)
class Augmentation:
    """Random changes of the training images, sampled independently for each image."""

    crop_padding: int = 0  # pixels of black padding on each side before the crop
    flip: bool = False  # mirror an image with probability 0.5
    smallest_scale: float = 1.0  # the smallest fraction of the side that a crop shows
    color: float = 0.0  # the largest relative change of brightness, contrast and saturation

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Augment images (n, channels, height, width) in 0 .. 1."""
        if self.smallest_scale < 1:
            images = _resized_crop(images, self.smallest_scale, generator)
        if self.crop_padding or self.flip:
            images = _padded_crop_and_flip(images, self.crop_padding, self.flip, generator)
        return _color_jitter(images, self.color, generator) if self.color else images


def _padded_crop_and_flip(
    images: Tensor, padding: int, flip: bool, generator: torch.Generator
) -> Tensor:
    """Crop at whole pixels, without interpolation."""
    n, _, height, width = images.shape
    device = images.device
    top, left = torch.randint(0, 2 * padding + 1, (2, n, 1), generator=generator).to(device)
    rows = torch.arange(height, device=device) + top  # (n, height)
    columns = torch.arange(width, device=device).expand(n, width)
    if flip:
        mirrored = torch.rand(n, 1, generator=generator).to(device) < 0.5
        columns = torch.where(mirrored, width - 1 - columns, columns)
    columns = columns + left  # (n, width)
    padded = pad(images, (padding,) * 4).permute(0, 2, 3, 1)
    image = torch.arange(n, device=device)[:, None, None]
    return padded[image, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _resized_crop(images: Tensor, smallest: float, generator: torch.Generator) -> Tensor:
    """Crop `smallest` .. 1 of the side at a random place and resize it to the full side."""
    n = len(images)
    scale = smallest + (1 - smallest) * torch.rand(n, generator=generator)
    center = (1 - scale)[:, None] * (2 * torch.rand(n, 2, generator=generator) - 1)
    affine = torch.zeros(n, 2, 3)
    affine[:, 0, 0] = affine[:, 1, 1] = scale
    affine[:, :, 2] = center
    grid = affine_grid(affine.to(images), list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def _color_jitter(images: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Multiply brightness, contrast and saturation by factors in 1 ± `strength`."""
    uniform = torch.rand(3, len(images), 1, 1, 1, generator=generator)
    brightness, contrast, saturation = (1 + strength * (2 * uniform - 1)).to(images).unbind()
    images = images * brightness
    mean = to_grayscale(images).mean(dim=(2, 3), keepdim=True)
    images = mean * (1 - contrast) + images * contrast
    return (to_grayscale(images) * (1 - saturation) + images * saturation).clamp(0, 1)
