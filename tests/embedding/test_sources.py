"""Networks by the name of their source."""

import builtins
import copy
import hashlib
import json
import os
import pickle

import numpy as np
import pytest
import torch

from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources import load_embedder
from protorect.errors import DataError, MissingExtraError, OptionError

PICTURES = np.random.default_rng(0).integers(0, 256, (5, 28, 28, 3), dtype=np.uint8)


def without(monkeypatch, package):
    """Make the import of a package fail."""
    importing = builtins.__import__

    def refusing(name, *arguments, **options):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return importing(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refusing)


def test_weights_in_a_file(color_weights):
    embedder = load_embedder(color_weights, precision="float32")
    assert (embedder.size, embedder.channels) == (28, 3)
    features = embedder(PICTURES)
    assert features.shape[0] == 5
    np.testing.assert_array_equal(embedder(PICTURES[:2]), features[:2])
    assert load_embedder(color_weights, precision="bfloat16").digest != embedder.digest


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_and_pickles_give_the_same_features(tmp_path, color_weights, copied):
    path = onnx_file(tmp_path / "means.onnx", ["n", 3, 28, 28])
    sources = [color_weights, f"{color_weights}:mirror=true", f"onnx:{path}:mean=0.5", "best"]
    embedders = [load_embedder(source, precision="float32") for source in sources]
    embedders.append(load_embedder())
    for embedder in embedders:
        other = copied(embedder)
        np.testing.assert_array_equal(other(PICTURES), embedder(PICTURES))
        assert (other.digest, other.origin) == (embedder.digest, embedder.origin)


def test_the_digest_does_not_change(color_weights):
    """It names the features in caches and classifiers that exist already."""
    network = TrainedBackbone.load(color_weights)
    for precision, bfloat16 in (("float32", False), ("bfloat16", True)):
        origin = f"{network.digest} {network.preprocessing} 28 {bfloat16}"
        digest = hashlib.sha256(origin.encode()).hexdigest()
        assert load_embedder(color_weights, precision=precision).digest == digest


def test_unknown_names_and_devices_are_refused(color_weights):
    for source in (color_weights, "onnx:nowhere.onnx", "hf:nowhere"):
        with pytest.raises(OptionError, match="device 'meta' cannot be used: it holds no values"):
            load_embedder(source, device="meta")
        with pytest.raises(OptionError, match="unknown precision 'float16'"):
            load_embedder(source, precision="float16")
    with pytest.raises(OptionError, match="efficientnet-lite0"):
        load_embedder("efficientnet-lite9")
    with pytest.raises(OptionError, match="device 'nowhere' cannot be used"):
        load_embedder(color_weights, device="nowhere")


def onnx_file(path, shape, last=False):
    """A network that computes the mean color."""
    import onnx
    from onnx import TensorProto, helper

    axes = helper.make_tensor("axes", TensorProto.INT64, [2], [1, 2] if last else [2, 3])
    node = helper.make_node("ReduceMean", ["pixels", "axes"], ["features"], keepdims=1)
    inputs = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, shape)
    outputs = helper.make_tensor_value_info("features", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "means", [inputs], [outputs], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("shape", [["n", 3, 28, 28], [2, 3, 28, 28], ["n", 28, 28, 3]])
def test_an_onnx_file(tmp_path, shape):
    path = onnx_file(tmp_path / "means.onnx", shape, last=shape[-1] == 3)
    embedder = load_embedder(f"onnx:{path}:mean=0.5,std=0.25/0.5/1")
    assert (embedder.size, embedder.channels) == (28, 3)
    expected = (PICTURES.reshape(5, -1, 3).mean(axis=1) / 255 - 0.5) / [0.25, 0.5, 1]
    np.testing.assert_allclose(embedder(PICTURES), expected, rtol=1e-4, atol=1e-5)
    assert load_embedder(f"onnx:{path}").digest != embedder.digest


def test_unusable_onnx_files_and_options_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*nowhere.onnx: No such file"):
        load_embedder(f"onnx:{tmp_path}/nowhere.onnx")
    with pytest.raises(DataError, match="it is not a regular file"):
        load_embedder(f"onnx:{os.devnull}")
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(DataError, match="is no ONNX network that can be run"):
        load_embedder(f"onnx:{tmp_path}/text.onnx")
    path = onnx_file(tmp_path / "means.onnx", ["n", 3, 28, 28])
    for option, message in {
        "meen=1": "unknown option of onnx: 'meen'. Did you mean 'mean'?",
        "mean": "'mean' is no option of onnx:; write name=value, as in mirror=false.",
        "mean=x": "mean=x: a number, or several as in 0.5/0.4/0.3, is expected.",
        "mean=123.7": "mean is [123.7]; it must be a list of numbers in 0 .. 1.",
        "mean=nan": "mean is [nan]; it must be a list of numbers in 0 .. 1.",
        "mean=0.5/0.5": "mean has 2 numbers for 3 channels.",
        "std=0": "std is [0.0]; it must be a list of numbers in 0 .. 1e+06, excluding 0.",
        "size=0": "size is 0; it must be a whole number in 1 .. 1024.",
        "size=84.5": "size=84.5: a whole number is expected.",
    }.items():
        with pytest.raises(OptionError) as error:
            load_embedder(f"onnx:{path}:{option}")
        assert str(error.value).startswith(message)


def test_the_size_of_an_onnx_file_that_takes_any(tmp_path):
    path = onnx_file(tmp_path / "means.onnx", ["n", 3, "height", "width"])
    assert load_embedder(f"onnx:{path}").size == 224
    assert load_embedder(f"onnx:{path}:size=96").size == 96


def test_a_model_of_hugging_face(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.ViTConfig(**shape, intermediate_size=64, image_size=28, patch_size=7)
    model = transformers.ViTModel(config).eval()
    model.save_pretrained(tmp_path)
    normalization = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}
    preprocessing = {"size": {"height": 28, "width": 28}, **normalization}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(preprocessing))
    embedder = load_embedder(f"hf:{tmp_path}", precision="float32")
    assert (embedder.size, embedder.channels) == (28, 3)
    pixels = (PICTURES / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.4]
    with torch.inference_mode():
        expected = model(torch.from_numpy(pixels).permute(0, 3, 1, 2).float()).pooler_output
    np.testing.assert_allclose(embedder(PICTURES), expected.numpy(), rtol=1e-3, atol=1e-4)


def test_a_pooler_without_trained_weights_is_not_used(tmp_path):
    transformers = pytest.importorskip("transformers")
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.ViTConfig(**shape, intermediate_size=64, image_size=28, patch_size=7)
    model = transformers.ViTModel(config, add_pooling_layer=False).eval()
    model.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"size": 28}')
    pixels = torch.from_numpy(PICTURES).permute(0, 3, 1, 2) / 255 * 2 - 1
    with torch.inference_mode():
        expected = model(pixels).last_hidden_state[:, 0]
    features = load_embedder(f"hf:{tmp_path}", precision="float32")(PICTURES)
    np.testing.assert_allclose(features, expected.numpy(), rtol=1e-3, atol=1e-4)


def test_a_missing_model_is_refused(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(DataError, match="cannot load the model hf:"):
        load_embedder(f"hf:{tmp_path / 'nowhere'}")


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    without(monkeypatch, "transformers")
    with pytest.raises(MissingExtraError, match=r"pip install 'protorect\[hf\]'"):
        load_embedder("hf:a/b")
