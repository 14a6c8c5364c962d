"""EfficientNet-Lite0, trained on ImageNet.

Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019. The
Lite variants, made for small devices, have no squeeze-and-excitation, ReLU6 for swish, and a stem
and a head that do not grow with the rest; Lite0 has the widths and depths of B0 otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from protorect.backbones.base import Backbone, global_average, initialise
from protorect.backbones.efficientnet_lite_weights import backbone_weights, imagenet_weights

STEM = 32
HEAD = 1280
IMAGENET_CLASSES = 1000
MEAN, STD = 127 / 255, 128 / 255  # the weights want (0 .. 255 - 127) / 128
FEW = 4  # pictures whose large maps, those of the first blocks, stay in a cache
EPS, MOMENTUM = 1e-3, 0.01  # of batch norm, as trained; momentum 0.99 in TensorFlow's words


class Stage(NamedTuple):
    """Blocks of one width: table 1 of the paper, B0."""

    expansion: int
    kernel: int
    stride: int  # of the first block
    width: int
    blocks: int


STAGES = (
    Stage(expansion=1, kernel=3, stride=1, width=16, blocks=1),
    Stage(expansion=6, kernel=3, stride=2, width=24, blocks=2),
    Stage(expansion=6, kernel=5, stride=2, width=40, blocks=2),
    Stage(expansion=6, kernel=3, stride=2, width=80, blocks=3),
    Stage(expansion=6, kernel=5, stride=1, width=112, blocks=3),
    Stage(expansion=6, kernel=5, stride=2, width=192, blocks=4),
    Stage(expansion=6, kernel=3, stride=1, width=320, blocks=1),
)


LARGE_MAPS = sum(stage.blocks for stage in STAGES[:2])  # blocks before the second halving


class EfficientNetLite0(Backbone):
    """The network with weights drawn at random; `efficientnet_lite0` has the trained ones.

    The features come from behind the last ReLU6, as those the ImageNet classes are read from, so
    they lie in 0 .. 6. A grey picture is shown to it as three equal channels.
    """

    pixels_at_once = 2**20  # twenty pictures of 224 x 224

    def __init__(self, name: str, channels: int, size: int) -> None:
        super().__init__(name, channels, size)
        self.mean, self.std = (MEAN,) * channels, (STD,) * channels
        self.stem = _layer(3, STEM, kernel=3, stride=2)
        self.blocks = nn.Sequential(*_blocks())
        self.head = _layer(STAGES[-1].width, HEAD, kernel=1)
        self.dim = HEAD
        initialise(self)

    def features(self, pictures: Tensor) -> Tensor:
        """The last map, averaged over its positions."""
        colour = pictures.expand(-1, 3, -1, -1)
        # In training a batch norm sees the whole batch; else each picture goes its own way.
        parts = [colour] if self.training else torch.split(colour, FEW)
        early, late = self.blocks[:LARGE_MAPS], self.blocks[LARGE_MAPS:]
        maps = torch.cat([early(self.stem(part)) for part in parts])
        return global_average(self.head(late(maps)))


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow's "same": the odd pixel goes below and to the right."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name for it
        """Maps (n, inputs, side, side) -> (n, outputs, ceil(side / stride), same)."""
        side, kernel, stride = input.shape[-1], self.kernel_size[0], self.stride[0]
        missing = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        before = missing // 2
        after = missing - before
        padded = F.pad(input, [before, after, before, after]) if missing else input
        return super().forward(padded)


class Block(nn.Module):
    """Inverted residual (MBConv): widen, convolve every channel by itself, narrow, add."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand = _layer(inputs, inner, kernel=1) if expansion > 1 else nn.Identity()
        self.depthwise = _layer(inner, inner, kernel, stride, groups=inner)
        self.project = _layer(inner, outputs, kernel=1, relu=False)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, inputs, side, side) -> (n, outputs, ceil(side / stride), same)."""
        narrow: Tensor = self.project(self.depthwise(self.expand(maps)))
        return narrow + maps if self.adds else narrow


def efficientnet_lite0(name: str, channels: int, size: int) -> EfficientNetLite0:
    """The network with its ImageNet weights, from the package that holds them."""
    network = EfficientNetLite0(name, channels, size)
    network.load_state_dict(backbone_weights(network.state_dict()))
    return network.eval()


def imagenet_head() -> nn.Linear:
    """The ImageNet classes behind the features, (n, 1280) -> (n, 1000) logits.

    It is not part of the backbone, where nothing would ever train it.
    """
    head = nn.Linear(HEAD, IMAGENET_CLASSES)
    head.load_state_dict(imagenet_weights(head.state_dict()))
    return head


def _blocks() -> list[Block]:
    blocks, inputs = [], STEM
    for stage in STAGES:
        for place in range(stage.blocks):
            stride = stage.stride if place == 0 else 1
            blocks.append(Block(inputs, stage.width, stage.expansion, stage.kernel, stride))
            inputs = stage.width
    return blocks


def _layer(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, relu: bool = True
) -> nn.Sequential:
    conv = SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
    layer = nn.Sequential(conv, nn.BatchNorm2d(outputs, eps=EPS, momentum=MOMENTUM))
    return layer.append(nn.ReLU6(inplace=True)) if relu else layer
