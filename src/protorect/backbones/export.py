"""EfficientNet-Lite as an ONNX file, in float32 or in eight-bit integers.

Both take bytes (n, size, size, 3) as they are decoded and give features (n, dim). The pixels
(0 .. 255 - 127) / 128 that the network was trained with are bytes with a scale and a zero point, so
an eight-bit network reads them as they are.

In the eight-bit network, as onnxruntime expects it, a pair of QuantizeLinear and DequantizeLinear
stands where maps are rounded: to bytes, with one scale and zero point per map. Weights are signed
bytes with one scale per output channel, biases 32-bit integers. The range of a layer with ReLU6
ends at 6 or below, so that rounding clips, too.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from protorect.backbones.efficientnet_lite import EfficientNetLite, same_padding
from protorect.backbones.inference import fold_batch_norms
from protorect.backbones.onnx_file import Graph

PIXELS = "pixels"
_PIXEL_SCALE, _PIXEL_ZERO = 1 / 128, 127  # preprocessing of EfficientNet-Lite
_LEVELS, _LARGEST_WEIGHT, _LARGEST_BIAS = 255, 127, 2**30


class Rounding(NamedTuple):
    """Bytes q stand for the numbers (q - zero) * scale."""

    scale: float
    zero: int

    @classmethod
    def of_range(cls, low: float, high: float) -> "Rounding":
        """The rounding of numbers from `low` to `high`, with 0 exact."""
        low, high = min(low, 0.0), max(high, 1e-6)
        scale = (high - low) / _LEVELS
        return cls(scale, round(-low / scale))

    def squared_error(self, values: NDArray[np.float32]) -> float:
        """Mean squared error of rounded values."""
        levels = np.clip(np.rint(values / self.scale) + self.zero, 0, _LEVELS)
        return float(np.square((levels - self.zero) * self.scale - values).mean())


class FoldedConv(NamedTuple):
    """A convolution with its batch norm folded."""

    kernel: Tensor
    bias: Tensor
    stride: int
    groups: int
    clips: bool  # whether ReLU6 follows


def folded_layers(network: EfficientNetLite) -> dict[str, FoldedConv]:
    """The convolutions of a network by the names of their layers, in their order."""
    layers = {}
    for name, layer in fold_batch_norms(network).named_modules():
        if isinstance(layer, nn.Sequential) and isinstance(conv := layer[0], nn.Conv2d):
            assert conv.bias is not None  # of the batch norm
            kernel, bias, clips = conv.weight.detach(), conv.bias.detach(), len(layer) == 3
            layers[name] = FoldedConv(kernel, bias, conv.stride[0], conv.groups, clips)
    return layers


def export(network: EfficientNetLite) -> bytes:
    """The network in float32."""
    return _Export(network, folded_layers(network), {}).model()


def export_int8(
    network: EfficientNetLite,
    layers: Mapping[str, FoldedConv],
    roundings: Mapping[str, Rounding],
) -> bytes:
    """The network in eight-bit integers; what has no rounding is computed in float32.

    `roundings` has one for the output of every layer and, as "blocks.N", of every sum.
    """
    return _Export(network, layers, roundings).model()


class _Export:
    """The nodes of a network; a value is the name of its maps, a rounding that of its bytes."""

    def __init__(
        self,
        network: EfficientNetLite,
        layers: Mapping[str, FoldedConv],
        roundings: Mapping[str, Rounding],
    ) -> None:
        self.network, self.layers, self.roundings = network, layers, roundings
        self.graph = Graph()

    def model(self) -> bytes:
        graph, size = self.graph, self.network.size
        bytes_ = graph.node("Transpose", PIXELS, perm=[0, 3, 1, 2])
        pixels = Rounding(_PIXEL_SCALE, _PIXEL_ZERO)
        value = graph.node("DequantizeLinear", bytes_, *self._constants(pixels))
        value, rounding, side = self._layer("stem", value, pixels, size)
        for number, block in enumerate(self.network.blocks):
            name, before = f"blocks.{number}", value
            for part in ("expand", "depthwise", "project"):
                if f"{name}.{part}" in self.layers:
                    value, rounding, side = self._layer(f"{name}.{part}", value, rounding, side)
            if block.adds_input:
                value, rounding = self._rounded(name, graph.node("Add", value, before))
        value, _, _ = self._layer("head", value, rounding, side)
        value = graph.node("Flatten", graph.node("GlobalAveragePool", value))
        return graph.model((PIXELS, "uint8", ["n", size, size, 3]), value, self.network.dim)

    def _layer(
        self, name: str, value: str, rounding: Rounding | None, side: int
    ) -> tuple[str, Rounding | None, int]:
        """Convolution and ReLU6 of maps with this rounding and side."""
        layer = self.layers[name]
        before, after = same_padding(side, layer.kernel.shape[-1], layer.stride)
        value = self.graph.node(
            "Conv",
            value,
            *self._weights(layer, rounding if name in self.roundings else None),
            strides=[layer.stride] * 2,
            pads=[before] * 2 + [after] * 2,
            group=layer.groups,
        )
        if layer.clips and name not in self.roundings:
            value = self.graph.node("Clip", value, *map(self.graph.constant, (0.0, 6.0)))
        return *self._rounded(name, value), -(-side // layer.stride)

    def _weights(self, layer: FoldedConv, rounding: Rounding | None) -> tuple[str, str]:
        kernel, bias = layer.kernel.numpy(), layer.bias.numpy()
        graph = self.graph
        if rounding is None:
            return graph.constant(kernel), graph.constant(bias)
        scale = weight_scale(layer, rounding).numpy()
        levels = np.rint(kernel / scale[:, None, None, None])
        kernels = (graph.constant(levels, "int8"), graph.constant(scale))
        bias_scale = scale * np.float32(rounding.scale)
        biases = (graph.constant(np.rint(bias / bias_scale), "int32"), graph.constant(bias_scale))
        return (
            graph.node("DequantizeLinear", *kernels, axis=0),
            graph.node("DequantizeLinear", *biases, axis=0),
        )

    def _rounded(self, name: str, value: str) -> tuple[str, Rounding | None]:
        rounding = self.roundings.get(name)
        if rounding is None:
            return value, None
        constants = self._constants(rounding)
        value = self.graph.node("QuantizeLinear", value, *constants)
        return self.graph.node("DequantizeLinear", value, *constants), rounding

    def _constants(self, rounding: Rounding) -> tuple[str, str]:
        return self.graph.constant(rounding.scale), self.graph.constant(rounding.zero, "uint8")


def weight_scale(layer: FoldedConv, inputs: Rounding) -> Tensor:
    """What one step of an eight-bit weight is worth, for each output channel.

    Steps of the 32-bit bias are that times the inputs' scale; a channel of tiny weights needs
    larger ones, so that its bias fits.
    """
    of_weights = layer.kernel.abs().amax(dim=(1, 2, 3)) / _LARGEST_WEIGHT
    of_bias = layer.bias.abs() / (_LARGEST_BIAS * inputs.scale)
    return torch.maximum(of_weights, of_bias).clamp(min=torch.finfo(torch.float32).tiny)
