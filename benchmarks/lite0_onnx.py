"""EfficientNet-Lite0 as an ONNX file with folded batch norms, for onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from protorect.backbones.efficientnet_lite import EfficientNetLite
from protorect.backbones.registry import build


class _Graph:
    """Nodes and weights in their order; a value has a name and a side in pixels."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def weight(self, values: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def layer(self, layer: nn.Sequential, value: str, side: int) -> tuple[str, int]:
        """Convolution, batch norm, and ReLU6 if there is one."""
        conv, norm = layer[0], layer[1]
        scale = (norm.weight / (norm.running_var + norm.eps).sqrt()).detach()
        kernel = self.weight(conv.weight.detach() * scale[:, None, None, None])
        bias = self.weight(norm.bias.detach() - norm.running_mean * scale)
        stride, size = conv.stride[0], conv.kernel_size[0]
        after = -(-side // stride)
        missing = max((after - 1) * stride + size - side, 0)
        pads = [missing // 2] * 2 + [missing - missing // 2] * 2
        attributes = {"strides": [stride] * 2, "pads": pads, "group": conv.groups}
        value = self.node("Conv", [value, kernel, bias], **attributes)
        if len(layer) == 3:
            value = self.node("Clip", [value, self.weight(0.0), self.weight(6.0)])
        return value, after


def write_lite0(path: Path) -> None:
    """Write the network; it takes (n, 3, 224, 224) prepared pixels and gives (n, 1280)."""
    network = build("efficientnet-lite0")
    assert isinstance(network, EfficientNetLite)
    graph = _Graph()
    value, side = graph.layer(network.stem, "pixels", network.size)
    for block in network.blocks:
        before = value
        if isinstance(block.expand, nn.Sequential):
            value, side = graph.layer(block.expand, value, side)
        value, side = graph.layer(block.depthwise, value, side)
        value, side = graph.layer(block.project, value, side)
        if block.adds_input:
            value = graph.node("Add", [value, before])
    value, _ = graph.layer(network.head, value, side)
    value = graph.node("Flatten", [graph.node("GlobalAveragePool", [value])])
    inputs = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 224, 224])
    outputs = helper.make_tensor_value_info(value, TensorProto.FLOAT, ["n", 1280])
    lite0 = helper.make_graph(graph.nodes, "lite0", [inputs], [outputs], graph.weights)
    onnx.save(
        helper.make_model(lite0, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path
    )
