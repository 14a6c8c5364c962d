"""The backbones that can be asked for by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from protorect.backbones.base import Backbone
from protorect.backbones.convnet import CONV64, CONV128, CONV256, ConvNet
from protorect.backbones.efficientnet_lite import efficientnet_lite0
from protorect.backbones.resnet12 import ResNet12
from protorect.backbones.wide_resnet import WideResNet
from protorect.errors import unknown_name


@dataclass(frozen=True)
class Spec:
    """How a backbone is made.

    Parameters
    ----------
    make
        (name, channels, size) -> the module.
    summary
        One line on what it is.
    size
        Pixels a side it is used with if nothing is said.
    pretrained
        Whether it comes with weights, and needs no training.
    """

    make: Callable[[str, int, int], Backbone]
    summary: str
    size: int = 84
    pretrained: bool = False


BACKBONES: dict[str, Spec] = {
    "conv64": Spec(partial(ConvNet, widths=CONV64), "four convolutions, 64-64-64-64"),
    "conv128": Spec(partial(ConvNet, widths=CONV128), "four convolutions, 64-64-128-128"),
    "conv256": Spec(partial(ConvNet, widths=CONV256), "four convolutions, 64-96-128-256"),
    "resnet12": Spec(ResNet12, "residual, 12 convolutions deep, 64-160-320-640"),
    "wrn28-10": Spec(WideResNet, "wide residual, 28 convolutions deep, 160-320-640"),
    "efficientnet-lite0": Spec(
        efficientnet_lite0,
        "trained on ImageNet, for photographs",
        size=224,
        pretrained=True,
    ),
}


def build(name: str, *, channels: int = 3, size: int | None = None) -> Backbone:
    """A new backbone, (n, channels, size, size) -> (n, dim).

    Parameters
    ----------
    name
        One of `BACKBONES`. Its first weights are drawn from torch's generator: set
        `torch.manual_seed` before. A pretrained one has its trained weights.
    channels
        1 for grey pictures, 3 for colour.
    size
        Height and width of the pictures in pixels, from 28 up; if not given, 84, or what a
        pretrained network was trained with.
    """
    if name not in BACKBONES:
        raise unknown_name("backbone", name, BACKBONES)
    spec = BACKBONES[name]
    return spec.make(name, channels, spec.size if size is None else size)
