"""What is done to a picture before a network sees it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_GREY = (0.299, 0.587, 0.114)  # shares of red, green and blue in the luminance, ITU-R BT.601


@dataclass(frozen=True)
class Preprocessing:
    """What is done to a picture before the network sees it.

    Parameters
    ----------
    mean, std
        Per channel, what is taken from a picture in 0 .. 1 and what it is divided by.
    inverted
        Whether `embed` makes dark bright and bright dark first.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    inverted: bool = False

    def __call__(self, images: Tensor) -> Tensor:
        """Images (n, channels, height, width) as the network wants them."""
        return (images - _per_channel(self.mean, images)) / _per_channel(self.std, images)


def in_unit_range(pixels: Tensor) -> Tensor:
    """Bytes (n, height, width, channels) as numbers in 0 .. 1, (n, channels, height, width)."""
    return pixels.permute(0, 3, 1, 2).to(torch.get_default_dtype()).div_(255)


def grey(images: Tensor) -> Tensor:
    """How bright each pixel is, (n, channels, height, width) -> (n, 1, height, width)."""
    if images.shape[1] != 3:
        return images.mean(dim=1, keepdim=True)
    shares = images.new_tensor(_GREY)[:, None, None]
    return (images * shares).sum(dim=1, keepdim=True)


def _per_channel(numbers: tuple[float, ...], images: Tensor) -> Tensor | float:
    """What to calculate with: one number if all are equal, which is three times as fast."""
    equal = len(set(numbers)) == 1
    return numbers[0] if equal else images.new_tensor(numbers)[:, None, None]
