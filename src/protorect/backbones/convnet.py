"""The four-block convolutional networks of few-shot learning.

Vinyals et al., "Matching Networks for One Shot Learning", 2016, without the last ReLU, which
Gidaris and Komodakis, "Dynamic Few-Shot Visual Learning without Forgetting", 2018, remove so that
cosines can be negative; the widths 64-64-128-128 are from there, too.
"""

from torch import Tensor, nn

from protorect.backbones.base import Backbone, conv3x3, initialize

CONV64 = (64, 64, 64, 64)
CONV128 = (64, 64, 128, 128)
CONV256 = (64, 96, 128, 256)


class ConvNet(Backbone):
    """Blocks of convolution, batch norm, max-pool and ReLU, one per width; no ReLU at the end."""

    def __init__(self, name: str, channels: int, size: int, widths: tuple[int, ...]) -> None:
        super().__init__(name, channels, size)
        inputs = (channels, *widths[:-1])
        blocks = [_block(i, o) for i, o in zip(inputs, widths, strict=True)]
        del blocks[-1][-1]  # its ReLU
        self.blocks = nn.Sequential(*blocks)
        side = size >> len(widths)  # every block halves the side, rounding down
        self.dim = widths[-1] * side**2
        initialize(self)

    def features(self, images: Tensor) -> Tensor:
        """The last map, flattened."""
        maps: Tensor = self.blocks(images)  # (n, width, size / 16, size / 16)
        return maps.flatten(start_dim=1)


def _block(inputs: int, outputs: int) -> nn.Sequential:
    # ReLU and max-pool commute; behind the pool, ReLU has a quarter of the values.
    return nn.Sequential(
        conv3x3(inputs, outputs),
        nn.BatchNorm2d(outputs),
        nn.MaxPool2d(2),
        nn.ReLU(inplace=True),
    )
