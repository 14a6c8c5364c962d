"""Inference by torch: features of images, batch by batch.

`optimize` returns a copy of a network that gives the same features, but for rounding, with batch
norms folded into convolutions, which saves a pass over the maps for each.
"""

from copy import deepcopy
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from protorect._utils.parameters import PRECISIONS, check_choice
from protorect.backbones.base import Backbone
from protorect.backbones.preprocessing import Preprocessing, resized, to_float, to_grayscale

_LARGEST_BATCH = 256  # images
_BYTES_PER_PIXEL = 1024  # of an image, that its maps may need
_SHARE_OF_MEMORY = 0.25  # of what is free on a device, because several threads use it


@torch.inference_mode()
def embed(
    backbone: Backbone,
    images: NDArray[np.uint8],
    preprocessing: Preprocessing,
    *,
    bfloat16: bool = False,
    device: str | torch.device = "cpu",
    batch: int | None = None,
) -> NDArray[np.float32]:
    """Features (n, dim) of images (n, height, width, channels), `batch` at a time."""
    backbone.eval()
    batches = []
    size = batch or batch_size(backbone, device)
    for start in range(0, len(images), size):
        inputs = preprocess(backbone, images[start : start + size], preprocessing, device)
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=bfloat16):
            batches.append(backbone(inputs).float().cpu().numpy())
    return np.concatenate(batches) if batches else np.empty((0, 0), dtype=np.float32)


def preprocess(
    backbone: Backbone,
    images: NDArray[np.uint8],
    preprocessing: Preprocessing,
    device: str | torch.device,
) -> Tensor:
    """Images (n, height, width, channels) as the network takes them, (n, channels, size, size).

    The memory format is `torch.channels_last`.
    """
    pixels = torch.from_numpy(np.array(images)).to(device)
    pixels = 255 - pixels if preprocessing.inverted else pixels
    batch = convert(pixels, backbone.channels, backbone.size)
    return preprocessing(batch).contiguous(memory_format=torch.channels_last)


def convert(pixels: Tensor, channels: int, size: int) -> Tensor:
    """Bytes (n, height, width, any channels) as numbers in 0 .. 1, (n, channels, size, size)."""
    images = to_float(pixels)
    if images.shape[1] == 1 and channels == 3:
        images = images.expand(-1, 3, -1, -1)
    elif images.shape[1] == 3 and channels == 1:
        images = to_grayscale(images)
    return resized(images, size)


def batch_size(backbone: Backbone, device: str | torch.device = "cpu") -> int:
    """Number of images per batch: as many as fit into the CPU's cache, or the device's memory."""
    free = _free_memory(torch.device(device))
    pixels = _SHARE_OF_MEMORY * free / _BYTES_PER_PIXEL if free else backbone.pixels_per_batch
    return max(1, min(_LARGEST_BATCH, int(pixels) // backbone.size**2))


def _free_memory(device: torch.device) -> int:
    """Bytes that are free on a device of its own memory; 0 for the CPU."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    return 0


def uses_bfloat16(precision: str, device: str | torch.device = "cpu") -> bool:
    """Whether to compute in bfloat16; "auto" means where the hardware is fast at it."""
    check_choice("precision", precision, PRECISIONS)
    if precision != "auto":
        return precision == "bfloat16"
    if torch.device(device).type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    # A CPU without instructions for bfloat16 is slower in it than in float32. The checks are
    # private to torch: with a version that lacks them, the result is False.
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, check, bool)() for check in checks)


def move_network(
    network: nn.Module, device: str | torch.device, memory_format: torch.memory_format
) -> None:
    """Move a network to a device, with the weights of convolutions in this memory format."""
    network.to(device)
    network.to(memory_format=memory_format)  # type: ignore[call-overload]  # torch's types lack it


def optimize(backbone: Backbone, *, device: str | torch.device) -> Backbone:
    """A faster copy of a network for inference only, on a device; features differ by rounding."""
    copy = fold_batch_norms(backbone)
    move_network(copy, device, torch.channels_last)
    return copy


def fold_batch_norms(network: Backbone) -> Backbone:
    """A copy for inference, with every batch norm folded into the convolution before it."""
    copy = deepcopy(network).eval()
    for layer in [module for module in copy.modules() if isinstance(module, nn.Sequential)]:
        for index, (conv, norm) in enumerate(pairwise(layer)):
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                layer[index] = fuse_conv_bn_eval(conv, norm)
                layer[index + 1] = nn.Identity()
    return copy
