"""EfficientNet-Lite as ONNX files gives the features of the network."""

import hashlib

import numpy as np
import onnx
import pytest
import torch

from protorect.backbones.efficientnet_lite_weights import PACKAGES
from protorect.backbones.export import (
    PIXELS,
    FoldedConv,
    Rounding,
    export,
    export_int8,
    folded_layers,
    weight_scale,
)
from protorect.backbones.onnx_file import Graph
from protorect.backbones.quantized import quantized_network
from protorect.backbones.registry import build
from protorect.embedding.sources.session import open_session, sums_bytes_exactly


def pictures(size, count=2):
    """Smooth random pictures, as photographs are."""
    rng = np.random.default_rng(0)
    coarse = torch.from_numpy(rng.uniform(0, 255, (count, 3, 6, 6)))
    smooth = torch.nn.functional.interpolate(coarse, (size, size), mode="bicubic")
    return smooth.clamp(0, 255).permute(0, 2, 3, 1).byte().contiguous().numpy()


def run(model, bytes_):
    return open_session(model).run(None, {PIXELS: bytes_})[0]


def by_torch(network, bytes_):
    pixels = torch.from_numpy(bytes_).permute(0, 3, 1, 2) / 255
    with torch.inference_mode():
        return network(network.preprocessing(pixels)).numpy()


@pytest.mark.parametrize("name", PACKAGES)
def test_float32_gives_the_features_of_torch(name):
    network = build(name, size=65)  # odd and even sides
    model = export(network)
    onnx.checker.check_model(onnx.load_from_string(model), full_check=True)
    np.testing.assert_allclose(
        run(model, pictures(65)), by_torch(network, pictures(65)), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("name", PACKAGES)
def test_int8_gives_similar_features(name):
    network = build(name)
    model = quantized_network(name).read_bytes()
    onnx.checker.check_model(onnx.load_from_string(model), full_check=True)
    assert len(model) < 5_500_000
    expected, features = by_torch(network, pictures(network.size)), None
    if not sums_bytes_exactly():
        pytest.skip("this processor has no instructions for products of bytes")
    features = run(model, pictures(network.size))
    cosines = (features * expected).sum(1) / (
        np.linalg.norm(features, axis=1) * np.linalg.norm(expected, axis=1)
    )
    assert cosines.min() > 0.985
    assert np.abs(features - expected).max() > 1e-4  # it is another network


def test_most_weights_of_the_int8_files_are_bytes():
    model = onnx.load(quantized_network("efficientnet-lite2"))
    count = {onnx.TensorProto.INT8: 0, onnx.TensorProto.FLOAT: 0}
    for tensor in model.graph.initializer:
        if tensor.data_type in count:
            count[tensor.data_type] += np.prod(tensor.dims, dtype=int)
    assert count[onnx.TensorProto.INT8] > 50 * count[onnx.TensorProto.FLOAT]


def test_rounding_keeps_zero_and_the_range():
    for low, high in ((0.0, 6.0), (-2.0, 5.0), (-3.0, 0.0), (0.0, 0.0)):
        rounding = Rounding.of_range(low, high)
        assert 0 <= rounding.zero <= 255
        levels = (np.array([0, 255]) - rounding.zero) * rounding.scale
        np.testing.assert_allclose(levels, (low, high), atol=max(rounding.scale, 1e-6))
    values = np.array([0.0, 0.4, 7.0], np.float32)
    assert Rounding(1.0, 0).squared_error(values) == pytest.approx(0.16 / 3)
    assert Rounding(6 / 255, 0).squared_error(values) == pytest.approx(1 / 3, abs=1e-3)


def test_a_bias_fits_even_without_weights():
    layer = FoldedConv(torch.zeros(2, 1, 1, 1), torch.tensor([1000.0, 0.0]), 1, 1, False)
    inputs = Rounding(1e-3, 0)
    steps = layer.bias / (weight_scale(layer, inputs) * inputs.scale)
    assert (steps.abs() <= 2**30).all()


def test_what_has_no_rounding_is_computed_in_float32():
    network = build("efficientnet-lite0", size=28)
    layers = folded_layers(network)
    assert export_int8(network, layers, {}) == export(network)
    some = export_int8(network, layers, {"head": Rounding.of_range(0, 6)})
    kinds = [node.op_type for node in onnx.load_from_string(some).graph.node]
    assert kinds.count("QuantizeLinear") == 1


def test_a_graph_is_read_by_the_library():
    graph = Graph()
    total = graph.node("Add", "x", graph.constant([1.0, 2.0]))
    model = onnx.load_from_string(graph.model(("x", "float32", ["n", 2]), total, 2))
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.input[0].type.tensor_type.shape.dim[1].dim_value == 2
    assert onnx.numpy_helper.to_array(model.graph.initializer[0]).tolist() == [1, 2]


def test_the_files_are_those_of_the_notice():
    """Their features are in caches: a changed file is a new network."""
    digests = {
        name: hashlib.sha256(quantized_network(name).read_bytes()).hexdigest()[:16]
        for name in PACKAGES
    }
    notice = quantized_network("NOTICE").with_name("NOTICE.md").read_text()
    assert all(digest in notice for digest in digests.values()), digests
