"""Wide residual network WRN-28-10.

Zagoruyko and Komodakis, "Wide Residual Networks", 2016: depth 28, ten times the width of a ResNet
for 32-pixel pictures. The last ReLU is removed, so features can be negative.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from protorect.backbones.base import Backbone, conv1x1, conv3x3, global_average, initialise

STEM = 16
WIDTHS = (160, 320, 640)
STRIDES = (1, 2, 2)
BLOCKS = 4  # in a group: three groups of four blocks of two convolutions, and four more, are 28


class WideResNet(Backbone):
    """A convolution, three groups of pre-activation blocks, a batch norm, the average."""

    def __init__(self, name: str, channels: int, size: int) -> None:
        super().__init__(name, channels, size)
        self.stem = conv3x3(channels, STEM)
        self.groups = nn.Sequential(
            *(
                _group(before, after, stride)
                for before, after, stride in zip((STEM, *WIDTHS[:-1]), WIDTHS, STRIDES, strict=True)
            )
        )
        self.norm = nn.BatchNorm2d(WIDTHS[-1])
        self.dim = WIDTHS[-1]
        initialise(self)

    def features(self, pictures: Tensor) -> Tensor:
        """The last map, normalised and averaged over its positions."""
        return global_average(self.norm(self.groups(self.stem(pictures))))


class Block(nn.Module):
    """Batch norm and ReLU before each of two 3 x 3 convolutions, beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv2 = conv3x3(outputs, outputs)
        self.shortcut = conv1x1(inputs, outputs, stride) if inputs != outputs else None

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, inputs, side, side) -> (n, outputs, side / stride, side / stride)."""
        activated = F.relu(self.norm1(maps))
        residual = self.conv2(F.relu(self.norm2(self.conv1(activated))))
        # A shortcut that changes the width starts behind the activation, as in the paper's code.
        beside = maps if self.shortcut is None else self.shortcut(activated)
        summed: Tensor = residual + beside
        return summed


def _group(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    first = Block(inputs, outputs, stride)
    return nn.Sequential(first, *(Block(outputs, outputs, 1) for _ in range(BLOCKS - 1)))
