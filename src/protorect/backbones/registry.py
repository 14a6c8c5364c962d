"""The backbones by name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from protorect.backbones.base import Backbone
from protorect.backbones.convnet import CONV64, CONV128, CONV256, ConvNet
from protorect.backbones.efficientnet_lite import efficientnet_lite
from protorect.backbones.resnet12 import ResNet12
from protorect.backbones.wide_resnet import WideResNet
from protorect.errors import unknown_name


@dataclass(frozen=True)
class BackboneSpec:
    """Constructor, `make(name, channels, size)`, and description of a backbone."""

    make: Callable[[str, int, int], Backbone]
    summary: str  # one line
    size: int = 84  # default, pixels per side
    pretrained: bool = False  # comes with weights


BACKBONES: dict[str, BackboneSpec] = {
    "conv64": BackboneSpec(partial(ConvNet, widths=CONV64), "four convolutions, 64-64-64-64"),
    "conv128": BackboneSpec(partial(ConvNet, widths=CONV128), "four convolutions, 64-64-128-128"),
    "conv256": BackboneSpec(partial(ConvNet, widths=CONV256), "four convolutions, 64-96-128-256"),
    "resnet12": BackboneSpec(ResNet12, "residual, 12 convolutions deep, 64-160-320-640"),
    "wrn28-10": BackboneSpec(WideResNet, "wide residual, 28 convolutions deep, 160-320-640"),
    "efficientnet-lite0": BackboneSpec(
        efficientnet_lite, "trained on ImageNet, for photographs", size=224, pretrained=True
    ),
    "efficientnet-lite1": BackboneSpec(
        partial(efficientnet_lite, width=1.0, depth=1.1),
        "trained on ImageNet, deeper than Lite0",
        size=240,
        pretrained=True,
    ),
    "efficientnet-lite2": BackboneSpec(
        partial(efficientnet_lite, width=1.1, depth=1.2),
        "trained on ImageNet, deeper and wider than Lite0",
        size=260,
        pretrained=True,
    ),
}


def build(name: str, *, channels: int = 3, size: int | None = None) -> Backbone:
    """Build the backbone of this name, which maps (n, channels, size, size) to (n, dim).

    Its initial weights are sampled from torch's global generator, unless it is pretrained. The
    default size is 84 pixels, or the size that a pretrained network was trained with.
    """
    if name not in BACKBONES:
        raise unknown_name("backbone", name, BACKBONES)
    spec = BACKBONES[name]
    return spec.make(name, channels, spec.size if size is None else size)
