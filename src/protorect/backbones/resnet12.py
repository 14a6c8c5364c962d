"""ResNet-12, as used in few-shot learning.

Lee et al., "Meta-Learning with Differentiable Convex Optimization", 2019 (MetaOptNet), with the
last activation removed and the last map averaged.
"""

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from protorect.backbones.base import Backbone, conv1x1, conv3x3, global_average, initialize
from protorect.backbones.dropblock import DropBlock

WIDTHS = (64, 160, 320, 640)
DROP_BLOCKS = (0, 0, 5, 5)  # side of the dropped squares in each block; 0 drops nothing
SLOPE = 0.1  # of LeakyReLU below zero


class ResNet12(Backbone):
    """Four residual blocks of three convolutions, each followed by a max-pool."""

    averages = True

    def __init__(self, name: str, channels: int, size: int) -> None:
        super().__init__(name, channels, size)
        shapes = zip((channels, *WIDTHS[:-1]), WIDTHS, DROP_BLOCKS, strict=True)
        self.blocks = nn.Sequential(*(ResidualBlock(*shape) for shape in shapes))
        self.blocks[-1].activation = nn.Identity()
        self.dim = WIDTHS[-1]
        initialize(self)

    def features(self, images: Tensor) -> Tensor:
        """The last map, averaged over its positions."""
        return global_average(self.blocks(images))


class ResidualBlock(nn.Module):
    """Three 3 x 3 convolutions plus a 1 x 1 shortcut, then max-pool and DropBlock."""

    def __init__(self, inputs: int, outputs: int, drop_block: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            conv3x3(inputs, outputs),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(SLOPE, inplace=True),
            conv3x3(outputs, outputs),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(SLOPE, inplace=True),
            conv3x3(outputs, outputs),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential(conv1x1(inputs, outputs), nn.BatchNorm2d(outputs))
        self.activation: nn.Module = nn.LeakyReLU(SLOPE, inplace=True)
        self.drop = DropBlock(block=drop_block) if drop_block else nn.Identity()

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, inputs, side, side) -> (n, outputs, side / 2, side / 2)."""
        activated = self.activation(self.convolutions(maps) + self.shortcut(maps))
        dropped: Tensor = self.drop(F.max_pool2d(activated, 2))
        return dropped
