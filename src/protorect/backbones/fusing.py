"""Convolutions that apply the activation behind them in the same pass, on the processor.

torch reads and writes all maps once more for an activation, and brings the kernel into the order
that oneDNN wants at every call; in a network of thin layers that takes half of the time. The
operations that do neither are the ones torch's compiler uses. They need no compiler, but torch
does not promise to keep them, so they are tried and compared before they are used.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from protorect.backbones.base import Backbone
from protorect.backbones.folding import HalvingConv2d, of_even_side

_CLOSE = 1e-3  # of features about 1: far above rounding, far below any mistake


class FusedConv2d(nn.Module):
    """A convolution and an activation, (n, inputs, side, side) -> (n, outputs, ...), in float32.

    Parameters
    ----------
    conv
        The convolution.
    activation
        What follows it; anything that is none means nothing.
    """

    def __init__(self, conv: nn.Conv2d, activation: nn.Module) -> None:
        super().__init__()
        self._halves = isinstance(conv, HalvingConv2d)
        shape = (list(conv.padding), list(conv.stride), list(conv.dilation), conv.groups)
        kernel = conv.weight.detach().contiguous(memory_format=torch.channels_last)
        # The packed kernel is no ordinary tensor, so it is kept out of the state.
        self._kernel = torch.ops.mkldnn._reorder_convolution_weight(kernel, *shape, None)
        self._bias = None if conv.bias is None else conv.bias.detach()
        self._given = (*shape, *_named(activation), "")

    def forward(self, maps: Tensor) -> Tensor:
        """Maps, convolved and activated."""
        maps = of_even_side(maps) if self._halves else maps
        found: Tensor = torch.ops.mkldnn._convolution_pointwise(
            maps, self._kernel, self._bias, *self._given
        )
        return found


def fused(backbone: Backbone) -> Backbone:
    """A copy of a folded network with fused convolutions, or the network itself if none can be.

    It computes in float32 on the processor only, and never learns.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return backbone
    generator = torch.Generator().manual_seed(0)
    shape = (1, backbone.channels, backbone.size, backbone.size)
    picture = torch.randn(shape, generator=generator).contiguous(memory_format=torch.channels_last)
    try:
        with torch.inference_mode():
            copy = _replaced(deepcopy(backbone))
            same = torch.allclose(copy(picture), backbone(picture), rtol=_CLOSE, atol=_CLOSE)
    except (RuntimeError, TypeError, AttributeError):  # gone, or called otherwise, in this torch
        return backbone
    return copy if same else backbone


def _replaced(network: Backbone) -> Backbone:
    for layer in list(network.modules()):
        if isinstance(layer, nn.Sequential):
            for place, conv in enumerate(layer):
                if isinstance(conv, nn.Conv2d) and type(conv) in (nn.Conv2d, HalvingConv2d):
                    last = _fused_with(layer, place)
                    layer[place] = FusedConv2d(conv, layer[last])
                    if last > place:
                        layer[last] = nn.Identity()
    return network


def _fused_with(layer: nn.Sequential, place: int) -> int:
    """Where the activation behind a convolution is, past what a batch norm has left."""
    for behind in range(place + 1, len(layer)):
        if isinstance(layer[behind], nn.ReLU | nn.ReLU6 | nn.LeakyReLU):
            return behind
        if not isinstance(layer[behind], nn.Identity):
            break
    return place


def _named(activation: nn.Module) -> tuple[str, list[float]]:
    """The name and the numbers by which oneDNN knows it."""
    match activation:
        case nn.ReLU6():
            return "hardtanh", [0.0, 6.0]
        case nn.LeakyReLU():
            return "leaky_relu", [activation.negative_slope]
        case nn.ReLU():
            return "relu", []
    return "none", []
