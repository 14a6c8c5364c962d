"""What every backbone has in common: what it takes, what it gives, how it starts."""

from __future__ import annotations

import math

from torch import Tensor, nn

from protorect.errors import DataError, OptionError

SMALLEST_SIZE = 28  # four halvings leave one position
CHANNELS = (1, 3)


class Backbone(nn.Module):
    """A network that turns pictures (n, channels, size, size) into features (n, dim).

    Parameters
    ----------
    name
        What it is called in the registry.
    channels
        1 for grey pictures, 3 for colour.
    size
        Height and width of the pictures in pixels, from 28 up.

    Attributes
    ----------
    dim
        How many features a picture of this size gets; a subclass sets it.
    mean, std
        What to subtract from and then divide pixels in 0 .. 1 by, a number per channel. None
        where the network asks for nothing and the training run decides.
    pixels_at_once
        Of the pictures that it is best shown together; a network of large maps holds about a
        kilobyte for each.
    """

    dim: int
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    pixels_at_once: int = 2**18

    def __init__(self, name: str, channels: int, size: int) -> None:
        super().__init__()
        if channels not in CHANNELS:
            raise OptionError(f"channels is {channels!r}; {name} takes 1 (grey) or 3 (colour).")
        if not isinstance(size, int) or size < SMALLEST_SIZE:
            raise OptionError(
                f"size is {size!r}; {name} takes pictures of {SMALLEST_SIZE} x {SMALLEST_SIZE} "
                "pixels or more. Enlarge them."
            )
        self.name = name
        self.channels = channels
        self.size = size

    def forward(self, pictures: Tensor) -> Tensor:
        """Features of pictures, (n, channels, size, size) -> (n, dim)."""
        wanted = (self.channels, self.size, self.size)
        if pictures.ndim != 4 or pictures.shape[1:] != wanted:
            raise DataError(
                f"{self.name} was built for pictures (n, {', '.join(map(str, wanted))}) and got "
                f"{tuple(pictures.shape)}. Resize the pictures, or build it with their channels "
                "and size."
            )
        return self.features(pictures)

    def features(self, pictures: Tensor) -> Tensor:
        """What `forward` does once the shape is known to be right."""
        raise NotImplementedError


def initialise(network: nn.Module) -> None:
    """Convolutions He-normal by fan-out, batch norms the identity.

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
    """A 3 x 3 convolution that keeps the size, or halves it; batch norm takes the bias's place."""
    return nn.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False)


def conv1x1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A 1 x 1 convolution without bias."""
    return nn.Conv2d(inputs, outputs, kernel_size=1, stride=stride, bias=False)


def global_average(maps: Tensor) -> Tensor:
    """Mean over the positions, (n, dim, height, width) -> (n, dim)."""
    return maps.mean(dim=(-2, -1))
