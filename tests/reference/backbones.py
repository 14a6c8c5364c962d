"""Independent implementations of the backbones: plain sums in float64, no module of torch.

Each function takes the tensors of a network by name, and images (n, channels, size, size).
"""

from __future__ import annotations

import torch
from torch import Tensor

Weights = dict[str, Tensor]


def conv(x: Tensor, kernel: Tensor, stride: int = 1, before: int = 0, after: int = 0) -> Tensor:
    """Every window times the kernel; `before` zeros above and left, `after` below and right."""
    n, channels, height, width = x.shape
    padded = x.new_zeros(n, channels, height + before + after, width + before + after)
    padded[:, :, before : before + height, before : before + width] = x
    k = kernel.shape[-1]
    windows = padded.unfold(2, k, stride).unfold(3, k, stride)  # (n, channels, h, w, k, k)
    if kernel.shape[1] == 1 < channels:
        return torch.einsum("nchwij,cij->nchw", windows, kernel[:, 0])
    return torch.einsum("nchwij,ocij->nohw", windows, kernel)


def norm(x: Tensor, w: Weights, name: str, eps: float = 1e-5) -> Tensor:
    mean, var, gain, bias = (
        w[f"{name}.{kind}"].view(1, -1, 1, 1)
        for kind in ("running_mean", "running_var", "weight", "bias")
    )
    return (x - mean) / (var + eps) ** 0.5 * gain + bias


def pool(x: Tensor) -> Tensor:
    return x.unfold(2, 2, 2).unfold(3, 2, 2).amax(dim=(-2, -1))


def leaky(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, 0.1 * x)


def relu(x: Tensor) -> Tensor:
    return x.clamp(min=0)


def convnet(w: Weights, x: Tensor) -> Tensor:
    for block in range(4):
        x = conv(x, w[f"blocks.{block}.0.weight"], before=1, after=1)
        x = norm(x, w, f"blocks.{block}.1")
        x = pool(relu(x) if block < 3 else x)
    return x.reshape(len(x), -1)


def resnet12(w: Weights, x: Tensor) -> Tensor:
    for block in range(4):
        name = f"blocks.{block}"
        y = x
        for third, (place, norm_place) in enumerate([(0, 1), (3, 4), (6, 7)]):
            y = conv(y, w[f"{name}.convolutions.{place}.weight"], before=1, after=1)
            y = norm(y, w, f"{name}.convolutions.{norm_place}")
            y = leaky(y) if third < 2 else y
        y = y + norm(conv(x, w[f"{name}.shortcut.0.weight"]), w, f"{name}.shortcut.1")
        x = pool(leaky(y) if block < 3 else y)
    return x.mean(dim=(2, 3))


def wide_resnet(w: Weights, x: Tensor) -> Tensor:
    x = conv(x, w["stem.weight"], before=1, after=1)
    for group in range(3):
        for block in range(4):
            name = f"groups.{group}.{block}"
            stride = 2 if group > 0 and block == 0 else 1
            a = relu(norm(x, w, f"{name}.norm1"))
            y = conv(a, w[f"{name}.conv1.weight"], stride, before=1, after=1)
            y = relu(norm(y, w, f"{name}.norm2"))
            y = conv(y, w[f"{name}.conv2.weight"], before=1, after=1)
            x = y + (conv(a, w[f"{name}.shortcut.weight"], stride) if block == 0 else x)
    return norm(x, w, "norm").mean(dim=(2, 3))


def efficientnet_lite(w: Weights, x: Tensor, strides: list[int]) -> Tensor:
    def layer(x: Tensor, name: str, stride: int = 1, last: bool = False) -> Tensor:
        kernel, side = w[f"{name}.0.weight"], x.shape[-1]
        missing = 0  # pixels until ceil(side / stride) windows fit, by trial
        while (side + missing - kernel.shape[-1]) // stride + 1 < (side + stride - 1) // stride:
            missing += 1
        x = conv(x, kernel, stride, before=missing // 2, after=missing - missing // 2)
        x = norm(x, w, f"{name}.1", eps=1e-3)
        return x if last else x.clamp(0, 6)

    x = layer(x, "stem", stride=2)
    for block, stride in enumerate(strides):
        name = f"blocks.{block}"
        y = layer(x, f"{name}.expand") if block else x
        y = layer(y, f"{name}.depthwise", stride)
        y = layer(y, f"{name}.project", last=True)
        x = x + y if x.shape == y.shape else y
    return layer(x, "head").mean(dim=(2, 3))


def efficientnet_lite0(w: Weights, x: Tensor) -> Tensor:
    #          16 | 24  | 40  | 80     | 112    | 192       | 320
    strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1]
    return efficientnet_lite(w, x, strides)


def efficientnet_lite1(w: Weights, x: Tensor) -> Tensor:
    # Lite2 has as many blocks as Lite1; it is wider.
    #          16 | 24     | 40     | 80        | 112       | 192          | 320
    strides = [1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1]
    return efficientnet_lite(w, x, strides)


NETWORKS = {
    "conv64": convnet,
    "conv128": convnet,
    "conv256": convnet,
    "resnet12": resnet12,
    "wrn28-10": wide_resnet,
    "efficientnet-lite0": efficientnet_lite0,
    "efficientnet-lite1": efficientnet_lite1,
    "efficientnet-lite2": efficientnet_lite1,
}
