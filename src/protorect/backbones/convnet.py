"""The four-block convolutional networks of few-shot learning.

Vinyals et al., "Matching Networks for One Shot Learning", 2016, without the last ReLU, which
Gidaris and Komodakis, "Dynamic Few-Shot Visual Learning without Forgetting", 2018, remove so that
cosines can be negative; the widths 64-64-128-128 are theirs.
"""

from __future__ import annotations

from torch import Tensor, nn

from protorect.backbones.base import Backbone, conv3x3, initialise

CONV64 = (64, 64, 64, 64)
CONV128 = (64, 64, 128, 128)
CONV256 = (64, 96, 128, 256)


class ConvNet(Backbone):
    """Blocks of convolution, batch norm, ReLU and max-pool; the last map is the feature.

    Parameters
    ----------
    name, channels, size
        See `Backbone`.
    widths
        Channels of each block.
    """

    def __init__(self, name: str, channels: int, size: int, widths: tuple[int, ...]) -> None:
        super().__init__(name, channels, size)
        last = len(widths) - 1
        inputs = (channels, *widths[:-1])
        self.blocks = nn.Sequential(
            *(
                _block(before, after, relu=place < last)
                for place, (before, after) in enumerate(zip(inputs, widths, strict=True))
            )
        )
        positions = size >> len(widths)  # every block halves the side, rounding down
        self.dim = widths[-1] * positions**2
        initialise(self)

    def features(self, pictures: Tensor) -> Tensor:
        """The last map, flattened."""
        maps: Tensor = self.blocks(pictures)  # (n, width, size / 16, size / 16)
        return maps.flatten(start_dim=1)


def _block(inputs: int, outputs: int, relu: bool) -> nn.Sequential:
    block = nn.Sequential(conv3x3(inputs, outputs), nn.BatchNorm2d(outputs), nn.MaxPool2d(2))
    # The ReLU of a maximum is the maximum of the ReLUs, on a quarter of the values.
    return block.append(nn.ReLU(inplace=True)) if relu else block
