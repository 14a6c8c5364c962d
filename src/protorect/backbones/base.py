"""The base class of all backbones, and layers that several of them use."""

import math

from torch import Tensor, nn

from protorect.backbones.preprocessing import Preprocessing
from protorect.errors import DataError, OptionError

SMALLEST_SIZE = 28  # pixels per side: four halvings leave one position


class Backbone(nn.Module):
    """A network that maps images (n, channels, size, size) to features (n, dim)."""

    dim: int  # set by the subclass
    preprocessing: Preprocessing | None = None  # of pretrained weights; else training decides
    averages: bool = False  # whether it averages its last map, so that weights fit every size
    pixels_per_batch: int = 2**18  # in inference, where a pixel may need a kilobyte of memory

    def __init__(self, name: str, channels: int, size: int) -> None:
        super().__init__()
        if channels not in (1, 3):
            raise OptionError(f"channels is {channels!r}; {name} takes 1 (gray) or 3 (color).")
        if not isinstance(size, int) or size < SMALLEST_SIZE:
            raise OptionError(
                f"size is {size!r}; {name} takes pictures of {SMALLEST_SIZE} x {SMALLEST_SIZE} "
                "pixels or more. Enlarge them."
            )
        self.name = name
        self.channels = channels
        self.size = size

    def forward(self, images: Tensor) -> Tensor:
        """Features of images, (n, channels, size, size) -> (n, dim)."""
        expected = (self.channels, self.size, self.size)
        if images.ndim != 4 or images.shape[1:] != expected:
            raise DataError(
                f"{self.name} was built for pictures (n, {', '.join(map(str, expected))}) and got "
                f"{tuple(images.shape)}. Resize the pictures, or build it with their channels "
                "and size."
            )
        return self.features(images)

    def features(self, images: Tensor) -> Tensor:
        """Features of images whose shape has been checked; implemented by the subclass."""
        raise NotImplementedError


def initialize(network: nn.Module) -> None:
    """Initialize convolutions He-normal by fan-out and batch norms to the identity.

    He et al., "Delving Deep into Rectifiers", 2015, eq. (14).
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels // module.groups * math.prod(module.kernel_size)
            nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A padded 3 x 3 convolution without bias, because batch norm follows."""
    return nn.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False)


def conv1x1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A 1 x 1 convolution without bias."""
    return nn.Conv2d(inputs, outputs, kernel_size=1, stride=stride, bias=False)


def global_average(maps: Tensor) -> Tensor:
    """Mean over the positions, (n, dim, height, width) -> (n, dim)."""
    return maps.mean(dim=(-2, -1))
