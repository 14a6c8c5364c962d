"""Inference: features of images, by a trained network that may be optimized for it.

`embed` computes features batch by batch. `optimize` returns a copy of a network that gives the same
features, but for rounding, in fewer passes over the maps: batch norms are folded into convolutions,
and on the CPU activations are fused with them.
"""

from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.fusion import fuse_conv_bn_eval

from protorect._utils.parameters import PRECISIONS, check_choice
from protorect.backbones.base import Backbone
from protorect.backbones.efficientnet_lite import SameConv2d
from protorect.backbones.preprocessing import Preprocessing, resized, to_float, to_grayscale

_LARGEST_BATCH = 256  # images
_TOLERANCE = 1e-3  # of features about 1: far above rounding, far below any mistake


@torch.inference_mode()
def embed(
    backbone: Backbone,
    images: NDArray[np.uint8],
    preprocessing: Preprocessing,
    *,
    bfloat16: bool = False,
    device: str | torch.device = "cpu",
) -> NDArray[np.float32]:
    """Features (n, dim) of images (n, height, width, channels), batch by batch."""
    backbone.eval()
    batches = []
    size = batch_size(backbone)
    for start in range(0, len(images), size):
        batch = preprocess(backbone, images[start : start + size], preprocessing, device)
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=bfloat16):
            batches.append(backbone(batch).float().cpu().numpy())
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


def batch_size(backbone: Backbone) -> int:
    """Number of images per batch: fewer where they are larger."""
    return max(1, min(_LARGEST_BATCH, backbone.pixels_per_batch // backbone.size**2))


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


def optimize(backbone: Backbone, *, bfloat16: bool, device: str | torch.device) -> Backbone:
    """A faster copy of a network for inference only, on a device; features differ by rounding."""
    copy = fold_batch_norms(backbone)
    move_network(copy, device, torch.channels_last)
    on_cpu = torch.device(device).type == "cpu"
    return fuse_activations(copy) if on_cpu and not bfloat16 else copy


def fold_batch_norms(network: Backbone) -> Backbone:
    """A copy for inference, with every batch norm folded into the convolution before it.

    Each saves a pass over the maps, and so does padding inside the convolution.
    """
    copy = deepcopy(network).eval()
    for layer in [module for module in copy.modules() if isinstance(module, nn.Sequential)]:
        for index, (conv, norm) in enumerate(pairwise(layer)):
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                layer[index] = _padded_inside(fuse_conv_bn_eval(conv, norm))
                layer[index + 1] = nn.Identity()
    return copy


class StridedSameConv2d(nn.Conv2d):
    """A convolution of stride 2 with "same" padding by equally many zeros on all sides.

    For maps with an even side, "same" pads one pixel more below and to the right. Here that pixel
    is added above and to the left as well, where the kernel has been extended by zeros.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name for it
        """Maps (n, inputs, side, side) -> (n, outputs, m, m), m = ceil(side / 2)."""
        return super().forward(_with_even_side(input))


def _with_even_side(maps: Tensor) -> Tensor:
    """Maps padded above and to the left if their side is odd, so that "same" is symmetric."""
    odd = maps.shape[-1] % 2
    return F.pad(maps, [odd, 0, odd, 0]) if odd else maps


def _padded_inside(conv: nn.Conv2d) -> nn.Conv2d:
    """A convolution with "same" padding, replaced by one with torch's symmetric padding."""
    kernel, stride = conv.kernel_size[0], conv.stride[0]
    if not isinstance(conv, SameConv2d) or stride > 2 or kernel % 2 == 0:
        return conv
    strided = stride == 2 and kernel > 1
    plain = (StridedSameConv2d if strided else nn.Conv2d)(
        conv.in_channels,
        conv.out_channels,
        kernel + strided,
        stride,
        padding=kernel // 2,
        groups=conv.groups,
    )
    plain.weight.data = F.pad(conv.weight.data, [1, 0, 1, 0]) if strided else conv.weight.data
    plain.bias = conv.bias
    return plain.eval()


class FusedConv2d(nn.Module):
    """A convolution and the activation after it in one pass, in float32 on the CPU.

    As two modules, torch reads and writes all maps once more for the activation, and reorders the
    kernel for oneDNN at every call: in a network of narrow layers, half of the time.
    """

    def __init__(self, conv: nn.Conv2d, activation: nn.Module) -> None:
        super().__init__()
        self._strided = isinstance(conv, StridedSameConv2d)
        self._shape = (list(conv.padding), list(conv.stride), list(conv.dilation), conv.groups)
        self._activation = (*_onednn_activation(activation), "")
        self._kernel = self._reordered(conv.weight.detach())
        self._bias = None if conv.bias is None else conv.bias.detach()

    def _reordered(self, kernel: Tensor) -> Tensor:
        """The kernel as oneDNN takes it, which is no ordinary tensor."""
        kernel = kernel.contiguous(memory_format=torch.channels_last)
        reordered: Tensor = torch.ops.mkldnn._reorder_convolution_weight(kernel, *self._shape, None)
        return reordered

    def __getstate__(self) -> dict[str, Any]:
        """The state to copy or pickle, with the kernel as an ordinary tensor."""
        return self.__dict__ | {"_kernel": self._kernel.to_dense()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state, with the kernel reordered."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._kernel = self._reordered(self._kernel)

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, inputs, side, side) -> (n, outputs, ...), convolved and activated."""
        maps = _with_even_side(maps) if self._strided else maps
        output: Tensor = torch.ops.mkldnn._convolution_pointwise(
            maps, self._kernel, self._bias, *self._shape, *self._activation
        )
        return output


def fuse_activations(backbone: Backbone) -> Backbone:
    """A copy of a folded network with fused convolutions, or the network itself if impossible.

    The operations are private to torch's compiler, so their result is compared with that of the
    plain network first; where they are missing or have changed, the network stays as it is.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return backbone
    generator = torch.Generator().manual_seed(0)
    shape = (1, backbone.channels, backbone.size, backbone.size)
    image = torch.randn(shape, generator=generator).contiguous(memory_format=torch.channels_last)
    try:
        with torch.inference_mode():
            copy = _with_fused_convolutions(deepcopy(backbone))
            same = torch.allclose(copy(image), backbone(image), rtol=_TOLERANCE, atol=_TOLERANCE)
    except (RuntimeError, TypeError, AttributeError):  # missing or changed in this torch
        return backbone
    return copy if same else backbone


def _with_fused_convolutions(network: Backbone) -> Backbone:
    for layer in [module for module in network.modules() if isinstance(module, nn.Sequential)]:
        for index, conv in enumerate(layer):
            if isinstance(conv, nn.Conv2d) and type(conv) in (nn.Conv2d, StridedSameConv2d):
                rest = range(index + 1, len(layer))
                # An Identity is what is left of a folded batch norm.
                following = next((i for i in rest if not isinstance(layer[i], nn.Identity)), index)
                layer[index] = FusedConv2d(conv, layer[following])
                if isinstance(layer[following], nn.ReLU | nn.ReLU6 | nn.LeakyReLU):
                    layer[following] = nn.Identity()
    return network


def _onednn_activation(activation: nn.Module) -> tuple[str, list[float]]:
    """Name and parameters of an activation in oneDNN; "none" for any other module."""
    match activation:
        case nn.ReLU6():
            return "hardtanh", [0.0, 6.0]
        case nn.LeakyReLU():
            return "leaky_relu", [activation.negative_slope]
        case nn.ReLU():
            return "relu", []
    return "none", []
