"""A network made faster for good once it is trained: the same features in fewer passes."""

from __future__ import annotations

from copy import deepcopy
from typing import TypeVar

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from protorect.backbones.efficientnet_lite import SameConv2d

Network = TypeVar("Network", bound=nn.Module)


def folded(network: Network) -> Network:
    """A copy for inference, with every batch norm folded into the convolution before it.

    Each saves a pass over the maps, and so does padding inside the convolution where both sides
    get the same. Features differ by rounding only.
    """
    copy = deepcopy(network).eval()
    for layer in list(copy.modules()):
        if not isinstance(layer, nn.Sequential):
            continue
        for place in range(len(layer) - 1):
            conv, norm = layer[place], layer[place + 1]
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                layer[place] = _padded_inside(fuse_conv_bn_eval(conv, norm))
                layer[place + 1] = nn.Identity()
    return copy


def _padded_inside(conv: nn.Conv2d) -> nn.Conv2d:
    """Padding as "same" at stride 1 is equal on both sides: a plain convolution does it itself."""
    if not isinstance(conv, SameConv2d) or conv.stride != (1, 1):
        return conv
    kernel = (conv.kernel_size[0], conv.kernel_size[1])
    padding = (kernel[0] // 2, kernel[1] // 2)
    channels = (conv.in_channels, conv.out_channels)
    plain = nn.Conv2d(*channels, kernel, padding=padding, groups=conv.groups)
    plain.weight, plain.bias = conv.weight, conv.bias
    return plain.eval()
