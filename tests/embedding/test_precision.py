"""Precision, device and options of the networks that come with the package."""

import hashlib

import numpy as np
import pytest
import torch

from protorect.backbones.quantized import quantized_network
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding import sources
from protorect.embedding.sources import DEFAULT_SOURCE, load_embedder
from protorect.embedding.sources.embedder import described, fitted
from protorect.embedding.sources.session import sums_bytes_exactly
from protorect.errors import OptionError

PICTURES = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)


@pytest.fixture(params=[True, False])
def exact(request, monkeypatch):
    """A processor with or without instructions for products of bytes."""
    monkeypatch.setattr(sources, "sums_bytes_exactly", lambda: request.param)
    return request.param


def test_int8_is_used_where_the_processor_computes_it_exactly(exact):
    embedder = load_embedder(device="cpu")
    precision = "int8" if exact else "float32"
    assert embedder.origin["precision"] == precision
    assert described(embedder) == f"{DEFAULT_SOURCE} in {precision} on cpu"
    features = load_embedder("efficientnet-lite0", device="cpu")(PICTURES)
    assert features.shape == (3, 1280)
    assert features.dtype == np.float32


def test_int8_is_refused_where_it_cannot_be_computed(monkeypatch, color_weights):
    monkeypatch.setattr(sources, "sums_bytes_exactly", lambda: False)
    with pytest.raises(OptionError, match="'int8' cannot be used: this processor lacks"):
        load_embedder("efficientnet-lite0", precision="int8", device="cpu")
    monkeypatch.undo()
    with pytest.raises(OptionError, match="has no int8 version; efficientnet-lite0, "):
        load_embedder(color_weights, precision="int8")


def test_the_precisions_have_different_digests():
    embedders = [
        load_embedder("efficientnet-lite0", precision=precision, device="cpu")
        for precision in ("int8", "float32", "bfloat16")
    ]
    assert len({embedder.digest for embedder in embedders}) == 3
    int8, float32, _ = (embedder(PICTURES) for embedder in embedders)
    assert not np.array_equal(int8, float32)


def test_features_of_lite0_in_old_caches_and_classifiers_are_recognized():
    """In float32 the digest is the one that torch's features had."""
    network = TrainedBackbone.load("efficientnet-lite0")
    for precision, bfloat16 in (("float32", False), ("bfloat16", True)):
        old = f"{network.digest} {network.preprocessing} 224 {bfloat16}"
        embedder = load_embedder("efficientnet-lite0", precision=precision, device="cpu")
        assert embedder.digest == hashlib.sha256(old.encode()).hexdigest()
    file = hashlib.sha256(quantized_network("efficientnet-lite0").read_bytes()).hexdigest()
    assert load_embedder("efficientnet-lite0", precision="int8").origin["weights"] == file


def test_mirrored_features_are_those_of_the_mirror_image(color_weights):
    plain = load_embedder(color_weights, precision="float32")
    mirrored = load_embedder(f"{color_weights}:mirror=true", precision="float32")
    expected = (plain(PICTURES) + plain(PICTURES[:, :, ::-1])) / 2
    np.testing.assert_allclose(mirrored(PICTURES), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mirrored(PICTURES[:, :, ::-1]), expected, rtol=1e-5, atol=1e-6)
    assert mirrored.digest != plain.digest
    assert mirrored.origin == plain.origin | {"mirror": True}
    same = load_embedder(f"{color_weights}:mirror=false", precision="float32")
    assert same.digest == plain.digest


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("miror=true", "unknown option of a network 'miror'. Did you mean 'mirror'"),
        ("mirror=perhaps", "mirror=perhaps: true or false is expected"),
    ],
)
def test_unknown_options_are_refused(option, message):
    with pytest.raises(OptionError, match=message):
        load_embedder(f"efficientnet-lite2:{option}")


def test_best_is_two_networks_each_of_unit_length():
    best = load_embedder("best", device="cpu")
    features = best(PICTURES)
    assert (best.size, features.shape) == (260, (3, 2560))
    for part, name in ((features[:, :1280], "lite1"), (features[:, 1280:], "lite2")):
        alone = load_embedder(f"efficientnet-{name}", device="cpu")(PICTURES)
        expected = alone / np.linalg.norm(alone, axis=1, keepdims=True)
        np.testing.assert_allclose(part, expected, rtol=1e-5)
    assert best.origin["backbone"] == "best"
    assert best.digest != load_embedder("efficientnet-lite2", device="cpu").digest


def test_pictures_of_another_size_and_gray_ones_are_fitted():
    assert fitted(PICTURES, 32) is PICTURES
    assert fitted(PICTURES, 48).shape == (3, 48, 48, 3)
    gray = np.full((1, 8, 8, 1), 77, np.uint8)
    np.testing.assert_array_equal(fitted(gray, 4), np.full((1, 4, 4, 3), 77))


def test_the_device_is_chosen(monkeypatch, color_weights):
    assert load_embedder(color_weights).device == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(OptionError, match="device 'cuda' cannot be used"):  # it is tried
        load_embedder(color_weights)


def test_sums_of_bytes_are_looked_at_once():
    assert sums_bytes_exactly() is sums_bytes_exactly()
