"""EfficientNet-Lite0, -Lite1 and -Lite2, trained on ImageNet.

Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019. The
Lite variants, made for small devices, have no squeeze-and-excitation, ReLU6 instead of swish, and
a stem, a head, a first and a last stage of fixed width and depth; otherwise Lite0, Lite1 and Lite2
have the widths and depths of B0, B1 and B2.
"""

import math

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from protorect.backbones.base import Backbone, global_average, initialize
from protorect.backbones.efficientnet_lite_weights import imagenet_weights
from protorect.backbones.preprocessing import Preprocessing

STEM = 32
HEAD = 1280
MEAN, STD = 127 / 255, 128 / 255  # of pixels in 0 .. 1; as trained, (0 .. 255 - 127) / 128
EPS, MOMENTUM = 1e-3, 0.01  # of batch norm, as trained; TensorFlow calls this momentum 0.99

# Table 1 of the paper, B0: expansion, kernel, stride of the first block, width, number of blocks
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
WIDTH_STEP = 8  # widths are rounded to multiples of it


class EfficientNetLite(Backbone):
    """The network with random weights; `efficientnet_lite` loads the trained ones.

    `width` and `depth` multiply those of Lite0. The features are taken after the last ReLU6, where
    the ImageNet classifier takes them, so they lie in 0 .. 6. A grayscale image is repeated in
    three channels.
    """

    averages = True
    pixels_per_batch = 2**20  # twenty images of 224 x 224

    def __init__(
        self, name: str, channels: int, size: int, width: float = 1.0, depth: float = 1.0
    ) -> None:
        super().__init__(name, channels, size)
        self.preprocessing = Preprocessing((MEAN,) * channels, (STD,) * channels)
        self.stem = _layer(3, STEM, kernel=3, stride=2)
        blocks = _blocks(width, depth)
        self.blocks = nn.Sequential(*blocks)
        self.head = _layer(blocks[-1].outputs, HEAD, kernel=1)
        self.dim = HEAD
        initialize(self)

    def features(self, images: Tensor) -> Tensor:
        """The last map, averaged over its positions."""
        color = images.expand(-1, 3, -1, -1)
        return global_average(self.head(self.blocks(self.stem(color))))


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow's "same": an odd pixel goes below and to the right."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name for it
        """Maps (n, inputs, side, side) -> (n, outputs, m, m), m = ceil(side / stride)."""
        before, after = same_padding(input.shape[-1], self.kernel_size[0], self.stride[0])
        return super().forward(F.pad(input, [before, after] * 2) if after else input)


def same_padding(side: int, kernel: int, stride: int) -> tuple[int, int]:
    """Pixels that TensorFlow's "same" adds before and after a side."""
    missing = max((-(-side // stride) - 1) * stride + kernel - side, 0)
    return missing // 2, missing - missing // 2


class InvertedResidual(nn.Module):
    """MBConv: expand by 1 x 1, depthwise convolution, project by 1 x 1, add the input."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        inner, self.outputs = inputs * expansion, outputs
        self.expand = _layer(inputs, inner, kernel=1) if expansion > 1 else nn.Identity()
        self.depthwise = _layer(inner, inner, kernel, stride, groups=inner)
        self.project = _layer(inner, outputs, kernel=1, relu=False)
        self.adds_input = stride == 1 and inputs == outputs

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, inputs, side, side) -> (n, outputs, m, m), m = ceil(side / stride)."""
        projected: Tensor = self.project(self.depthwise(self.expand(maps)))
        return projected + maps if self.adds_input else projected


def efficientnet_lite(
    name: str, channels: int, size: int, width: float = 1.0, depth: float = 1.0
) -> EfficientNetLite:
    """The network with its ImageNet weights."""
    network = EfficientNetLite(name, channels, size, width, depth)
    network.load_state_dict(imagenet_weights(name, network.state_dict()))
    return network.eval()


def _blocks(width: float, depth: float) -> list[InvertedResidual]:
    blocks, inputs = [], STEM
    for stage in STAGES:
        expansion, kernel, stride, channels, count = stage
        outputs = _scaled_width(channels, width)
        repeats = count if stage in (STAGES[0], STAGES[-1]) else math.ceil(count * depth)
        for block_stride in (stride, *[1] * (repeats - 1)):
            blocks.append(InvertedResidual(inputs, outputs, expansion, kernel, block_stride))
            inputs = outputs
    return blocks


def _scaled_width(channels: int, factor: float) -> int:
    """The nearest multiple of WIDTH_STEP."""
    return int(channels * factor + WIDTH_STEP / 2) // WIDTH_STEP * WIDTH_STEP


def _layer(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, relu: bool = True
) -> nn.Sequential:
    conv = SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
    layer = nn.Sequential(conv, nn.BatchNorm2d(outputs, eps=EPS, momentum=MOMENTUM))
    return layer.append(nn.ReLU6(inplace=True)) if relu else layer
