"""Networks that cannot be used: ONNX files and models of Hugging Face, one sentence each."""

import json

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper, save

from helpers.networks import with_trained_batch_norms
from protorect._utils.checkpoint import save_tensors
from protorect.backbones.registry import build
from protorect.cli import main
from protorect.embedding.sources import load_embedder
from protorect.errors import DataError

FLOAT = TensorProto.FLOAT


def network(path, inputs, nodes, output=FLOAT, constants=()):
    """An ONNX file with inputs by name (type and shape), and the output "features"."""
    described = [helper.make_tensor_value_info(name, *given) for name, given in inputs.items()]
    outputs = [helper.make_tensor_value_info("features", output, None)]
    graph = helper.make_graph(nodes, "network", described, outputs, list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    save(model, path)
    return path


def pooled(source="x", target="features"):
    return helper.make_node("GlobalAveragePool", [source], [target])


def refused(path, option=""):
    with pytest.raises(DataError) as error:
        load_embedder(f"onnx:{path}{option}")
    message = str(error.value)
    assert str(path.name) in message
    assert "\n" not in message
    return message


def test_the_number_of_inputs(tmp_path):
    constant = numpy_helper.from_array(np.zeros((1, 3, 4, 4), np.float32), "c")
    none = network(tmp_path / "none.onnx", {}, [pooled("c")], constants=[constant])
    assert "has 0 inputs (none); it must have one" in refused(none)
    inputs = dict.fromkeys("xy", (FLOAT, ["n", 3, 8, 8]))
    nodes = [helper.make_node("Add", ["x", "y"], ["s"]), pooled("s")]
    two = network(tmp_path / "two.onnx", inputs, nodes)
    assert "has 2 inputs (x, y); it must have one" in refused(two)


def test_a_network_without_an_output(tmp_path):
    described = [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 8, 8])]
    graph = helper.make_graph([pooled()], "network", described, [])
    opset = [helper.make_opsetid("", 18)]
    path = tmp_path / "without.onnx"
    save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    assert "has no output" in refused(path)


@pytest.mark.parametrize(
    "shape",
    [
        ["n", 3, 32, 64],
        ["n", 3, 0, 0],
        ["n", 3, 100_000, 100_000],
        ["n", 2, 32, 32],
        [100_000, 3, 32, 32],
        [0, 3, 32, 32],
        ["n", 3, "height", 64],
    ],
)
def test_shapes_that_are_no_pictures(tmp_path, shape):
    path = network(tmp_path / "shape.onnx", {"x": (FLOAT, shape)}, [pooled()])
    assert "it must take 1 or 3 channels, squares of 1 to 1024 pixels" in refused(path)


@pytest.mark.parametrize("shape", [["n", 3, 32], [], None])
def test_inputs_of_another_rank(tmp_path, shape):
    nodes = [helper.make_node("Identity", ["x"], ["features"])]
    path = network(tmp_path / "rank.onnx", {"x": (FLOAT, shape)}, nodes)
    assert "takes tensor(float) of shape" in refused(path)


def test_a_dynamic_size_that_does_not_fit(tmp_path):
    kernel = numpy_helper.from_array(np.ones((4, 3, 100, 100), np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["maps"]), pooled("maps")]
    inputs = {"x": (FLOAT, ["n", 3, "h", "w2"])}
    path = network(tmp_path / "dynamic.onnx", inputs, nodes, constants=[kernel])
    message = refused(path, ":size=32")
    assert "cannot be run on pictures of 32 x 32" in message
    assert "onnx:PATH:size=N" in message
    assert load_embedder(f"onnx:{path}:size=128").size == 128


@pytest.mark.parametrize(("kind", "name"), [(TensorProto.INT64, "int64"), (8, "string")])
def test_outputs_that_are_no_numbers(tmp_path, kind, name):
    cast = helper.make_node("Cast", ["p"], ["features"], to=kind)
    inputs = {"x": (FLOAT, ["n", 3, 32, 32])}
    path = network(tmp_path / "type.onnx", inputs, [pooled("x", "p"), cast], output=kind)
    assert f"gives tensor({name}) (features); a network that embeds" in refused(path)


def test_outputs_that_are_not_finite_or_constant(tmp_path):
    inputs = {"x": (FLOAT, ["n", 3, 32, 32])}
    nan = numpy_helper.from_array(np.float32(np.nan), "c")
    zero = numpy_helper.from_array(np.float32(0), "c")
    nodes = [pooled("x", "p"), helper.make_node("Mul", ["p", "c"], ["features"])]
    path = network(tmp_path / "nan.onnx", inputs, nodes, constants=[nan])
    assert "gives features that are not finite numbers" in refused(path)
    path = network(tmp_path / "constant.onnx", inputs, nodes, constants=[zero])
    assert "gives the same features for every picture" in refused(path)


def test_outputs_of_another_shape(tmp_path):
    inputs = {"x": (FLOAT, ["n", 3, 32, 32])}
    total = helper.make_node("ReduceSum", ["x"], ["features"], keepdims=0)
    assert "gives () for 2 pictures" in refused(network(tmp_path / "sum.onnx", inputs, [total]))
    inputs = {"x": (FLOAT, ["n", 3, 512, 512])}
    flat = helper.make_node("Flatten", ["x"], ["features"])
    message = refused(network(tmp_path / "flat.onnx", inputs, [flat]))
    assert "gives 786,432 numbers per picture" in message


def test_external_data_outside_of_the_folder(tmp_path):
    (tmp_path / "secret.bin").write_bytes(np.ones(3, np.float32).tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    constant = helper.make_tensor("c", FLOAT, [1, 3, 1, 1], [1.0, 1.0, 1.0])
    constant.ClearField("float_data")
    constant.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "../secret.bin"), ("length", "12")):
        entry = constant.external_data.add()
        entry.key, entry.value = key, value
    nodes = [pooled("x", "p"), helper.make_node("Mul", ["p", "c"], ["features"])]
    inputs = {"x": (FLOAT, ["n", 3, 32, 32])}
    path = network(folder / "external.onnx", inputs, nodes, constants=[constant])
    assert "is no ONNX network that can be run" in refused(path)


def test_weights_that_give_constant_features(tmp_path, capsys):
    constant = build("conv64", channels=3, size=28)
    for parameter in constant.parameters():
        torch.nn.init.zeros_(parameter)
    card = {"kind": "backbone", "backbone": "conv64", "channels": 3, "size": 28}
    card |= {"mean": [0.5] * 3, "std": [0.25] * 3}
    save_tensors(tmp_path / "w.safetensors", constant.state_dict(), card)
    with pytest.raises(DataError, match="conv64 gives the same features for every picture"):
        load_embedder(tmp_path / "w.safetensors")
    arguments = ["extract", str(tmp_path / "w.safetensors"), str(tmp_path), "--out", "f.npz"]
    assert main(arguments) == 2
    assert "gives the same features" in capsys.readouterr().err
    varied = with_trained_batch_norms(build("conv64", channels=3, size=28))
    save_tensors(tmp_path / "w.safetensors", varied.state_dict(), card)
    assert load_embedder(tmp_path / "w.safetensors").size == 28


@pytest.fixture
def model_folder(tmp_path):
    transformers = pytest.importorskip("transformers")
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.ViTConfig(**shape, intermediate_size=64, image_size=28, patch_size=7)
    transformers.ViTModel(config).eval().save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"size": 28}')
    return tmp_path


def test_a_model_with_code_of_its_own_is_refused_unless_it_is_trusted(model_folder):
    marker = model_folder / "ran"
    (model_folder / "own.py").write_text(
        f"open({str(marker)!r}, 'w').close()\n"
        "from transformers import ViTConfig as OwnConfig, ViTModel as OwnModel\n"
    )
    config = json.loads((model_folder / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "own.OwnModel", "AutoConfig": "own.OwnConfig"}
    (model_folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match=r"comes with Python code .*trust_remote_code=true"):
        load_embedder(f"hf:{model_folder}")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("preprocessing", "message"),
    [
        ({"size": 100_000}, "takes pictures of size 100000; at most 1024"),
        ({"size": {"height": "x"}}, "takes pictures of size 'x'"),
        ({"size": 28, "image_mean": [0.5]}, "both must be three numbers"),
        ({"size": 28, "image_std": [0, 1, 1]}, "both must be three numbers"),
        ({"size": 28, "image_std": "abc"}, "both must be three numbers"),
    ],
)
def test_preprocessing_that_cannot_be_used(model_folder, preprocessing, message):
    (model_folder / "preprocessor_config.json").write_text(json.dumps(preprocessing))
    with pytest.raises(DataError, match=message):
        load_embedder(f"hf:{model_folder}")
