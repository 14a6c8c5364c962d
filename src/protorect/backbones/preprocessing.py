"""Conversion and normalization of images for a network."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import interpolate

_LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue, ITU-R BT.601


@dataclass(frozen=True)
class Preprocessing:
    """Normalization of pixels in 0 .. 1, with one mean and standard deviation per channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    inverted: bool = False  # whether `embed` inverts the intensities first

    def __call__(self, images: Tensor) -> Tensor:
        """Normalize images (n, channels, height, width) with pixels in 0 .. 1."""
        return (images - _per_channel(self.mean, images)) / _per_channel(self.std, images)


def to_float(pixels: Tensor) -> Tensor:
    """Bytes (n, height, width, channels) as numbers in 0 .. 1, (n, channels, height, width)."""
    return pixels.permute(0, 3, 1, 2).to(torch.get_default_dtype()).div_(255)


def resized(images: Tensor, side: int) -> Tensor:
    """Images (n, channels, height, width) resized to `side` x `side`, antialiased where reduced."""
    if images.shape[2:] == (side, side):
        return images
    return interpolate(images, (side, side), mode="bilinear", antialias=True)


def to_grayscale(images: Tensor) -> Tensor:
    """Luminance of each pixel, (n, channels, height, width) -> (n, 1, height, width)."""
    if images.shape[1] != 3:
        return images.mean(dim=1, keepdim=True)
    weights = images.new_tensor(_LUMINANCE)[:, None, None]
    return (images * weights).sum(dim=1, keepdim=True)


def _per_channel(numbers: tuple[float, ...], images: Tensor) -> Tensor | float:
    """One number per channel to broadcast; a float if all are equal, three times as fast."""
    equal = len(set(numbers)) == 1
    return numbers[0] if equal else images.new_tensor(numbers)[:, None, None]
