"""Wide residual network WRN-28-10.

Zagoruyko and Komodakis, "Wide Residual Networks", 2016: depth 28, ten times the width of a ResNet
for 32-pixel images. The last ReLU is removed, so that features can be negative.
"""

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from protorect.backbones.base import Backbone, conv1x1, conv3x3, global_average, initialize

STEM = 16
WIDTHS = (160, 320, 640)
STRIDES = (1, 2, 2)
BLOCKS = 4  # per group: 3 groups x 4 blocks x 2 convolutions, stem and 3 shortcuts are 28


class WideResNet(Backbone):
    """A convolution, three groups of pre-activation blocks, batch norm, global average."""

    averages = True

    def __init__(self, name: str, channels: int, size: int) -> None:
        super().__init__(name, channels, size)
        self.stem = conv3x3(channels, STEM)
        shapes = zip((STEM, *WIDTHS[:-1]), WIDTHS, STRIDES, strict=True)
        self.groups = nn.Sequential(*(_group(*shape) for shape in shapes))
        self.norm = nn.BatchNorm2d(WIDTHS[-1])
        self.dim = WIDTHS[-1]
        initialize(self)

    def features(self, images: Tensor) -> Tensor:
        """The last map, normalized and averaged over its positions."""
        return global_average(self.norm(self.groups(self.stem(images))))


class PreActivationBlock(nn.Module):
    """Batch norm and ReLU before each of two 3 x 3 convolutions, plus a shortcut."""

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
        # A shortcut that changes the width takes the activated maps, as in the paper's code.
        shortcut = maps if self.shortcut is None else self.shortcut(activated)
        summed: Tensor = residual + shortcut
        return summed


def _group(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    first = PreActivationBlock(inputs, outputs, stride)
    return nn.Sequential(
        first, *(PreActivationBlock(outputs, outputs, 1) for _ in range(BLOCKS - 1))
    )
