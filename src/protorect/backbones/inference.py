"""From pictures to features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import interpolate

from protorect.backbones.base import Backbone
from protorect.backbones.preprocessing import Preprocessing, grey, in_unit_range

_MOST_AT_ONCE = 256  # pictures


@torch.inference_mode()
def embed(
    backbone: Backbone,
    images: NDArray[np.uint8],
    preprocessing: Preprocessing,
    *,
    half: bool = False,
    device: str | torch.device = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float32]:
    """Features (n, dim) of pictures (n, height, width, channels), a batch at a time."""
    backbone.eval()
    features: NDArray[Any] | None = None
    size = batch_size(backbone)
    for start in range(0, len(images), size):
        batch = prepared(backbone, images[start : start + size], preprocessing, device)
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=half):
            found = backbone(batch).float().cpu().numpy()
        if features is None:
            features = np.empty((len(images), found.shape[1]), dtype=np.float32)
        features[start : start + len(found)] = found
        if progress is not None:
            progress(start + len(found), len(images))
    return np.empty((0, 0), dtype=np.float32) if features is None else features


def prepared(
    backbone: Backbone,
    images: NDArray[np.uint8],
    preprocessing: Preprocessing,
    device: str | torch.device = "cpu",
) -> Tensor:
    """Pictures (n, height, width, channels) as the network wants them, (n, channels, size, size).

    They are laid out a position at a time, `torch.channels_last`.
    """
    batch = torch.from_numpy(np.array(images)).to(device)
    batch = 255 - batch if preprocessing.inverted else batch
    batch = _fitted(in_unit_range(batch), backbone)
    return preprocessing(batch).contiguous(memory_format=torch.channels_last)


def batch_size(backbone: Backbone) -> int:
    """How many pictures the network looks at together: few where they are large."""
    return max(1, min(_MOST_AT_ONCE, backbone.pixels_at_once // backbone.size**2))


def _fitted(images: Tensor, backbone: Backbone) -> Tensor:
    """Images of the size and channels that the backbone takes."""
    if images.shape[1] == 1 and backbone.channels == 3:
        images = images.expand(-1, 3, -1, -1)
    elif images.shape[1] == 3 and backbone.channels == 1:
        images = grey(images)
    if images.shape[-1] == backbone.size:
        return images
    size = (backbone.size, backbone.size)
    return interpolate(images, size, mode="bilinear", antialias=True, align_corners=False)


def uses_bfloat16(precision: str, device: str | torch.device = "cpu") -> bool:
    """Whether to compute in bfloat16; "auto" where the processor is fast at it."""
    if precision != "auto":
        return precision == "bfloat16"
    if torch.device(device).type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    # A processor without instructions of its own for it is slower in bfloat16 than in float32.
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def laid_out(network: nn.Module, device: str | torch.device, layout: torch.memory_format) -> None:
    """Bring a network to a device, its convolutions in this memory layout."""
    network.to(device)
    network.to(memory_format=layout)  # type: ignore[call-overload]  # torch's types forget it
