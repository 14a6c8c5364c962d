"""A network optimized for inference gives the same features."""

import pytest
import torch
from torch import nn

from helpers.networks import with_trained_batch_norms
from protorect.backbones.inference import (
    FusedConv2d,
    fold_batch_norms,
    fuse_activations,
    optimize,
    uses_bfloat16,
)
from protorect.backbones.registry import BACKBONES, build
from protorect.errors import OptionError

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch is built without oneDNN"
)
# Its batch norms stand before convolutions, so there is nothing to fold or fuse.
OPTIMIZABLE = [name for name in BACKBONES if name != "wrn28-10"]


@pytest.mark.parametrize("name", OPTIMIZABLE)
@torch.inference_mode()
def test_folding_keeps_the_features_and_leaves_the_network_unchanged(name):
    torch.manual_seed(0)
    network = with_trained_batch_norms(build(name, size=45))
    images = torch.randn(2, 3, 45, 45)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    expected = network(images)
    torch.testing.assert_close(fold_batch_norms(network)(images), expected, rtol=2e-3, atol=2e-3)
    for key, value in network.state_dict().items():
        assert torch.equal(value, before[key])


def test_every_batch_norm_after_a_convolution_is_folded():
    network = fold_batch_norms(build("efficientnet-lite0"))
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


@needs_onednn
@pytest.mark.parametrize("size", [45, 64])  # maps with odd and with even sides
@pytest.mark.parametrize("name", OPTIMIZABLE)
@torch.inference_mode()
def test_fusing_keeps_the_features(name, size):
    torch.manual_seed(0)
    network = fold_batch_norms(with_trained_batch_norms(build(name, size=size)))
    images = torch.randn(3, 3, size, size)
    fused = fuse_activations(network)
    assert any(isinstance(module, FusedConv2d) for module in fused.modules())
    assert not any(type(module) is nn.Conv2d for module in fused.modules())
    torch.testing.assert_close(fused(images), network(images), rtol=1e-4, atol=1e-4)


@needs_onednn
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.3), nn.Identity()])
@torch.inference_mode()
def test_a_fused_layer_is_a_convolution_and_its_activation(activation):
    torch.manual_seed(0)
    conv = nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2)
    maps = 9 * torch.randn(2, 4, 11, 11)
    expected = activation(conv(maps))
    torch.testing.assert_close(FusedConv2d(conv, activation)(maps), expected)


@pytest.mark.parametrize(
    "operation", [lambda *_: torch.zeros(1, 8), "not callable"], ids=["other", "not-callable"]
)
def test_private_operations_that_changed_are_not_used(monkeypatch, operation):
    monkeypatch.setattr(torch.ops.mkldnn, "_convolution_pointwise", operation)
    network = fold_batch_norms(build("conv64", size=28))
    assert fuse_activations(network) is network


def test_private_operations_that_are_missing_are_not_used(monkeypatch):
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    network = fold_batch_norms(build("conv64", size=28))
    assert fuse_activations(network) is network


@needs_onednn
@pytest.mark.parametrize("bfloat16", [False, True])
def test_only_float32_on_the_cpu_is_fused(bfloat16):
    network = optimize(build("conv64", size=28), bfloat16=bfloat16, device="cpu")
    assert any(isinstance(m, FusedConv2d) for m in network.modules()) is not bfloat16
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


@pytest.mark.parametrize("supported", [True, False])
def test_precision(monkeypatch, supported):
    assert uses_bfloat16("bfloat16")
    assert not uses_bfloat16("float32")
    checks = {"_is_avx512_bf16_supported": supported, "_is_amx_tile_supported": False}
    for name, answer in checks.items():
        monkeypatch.setattr(torch.cpu, name, lambda answer=answer: answer, raising=False)
    assert uses_bfloat16("auto") is supported


def test_an_unknown_precision_is_an_error():
    with pytest.raises(OptionError, match=r"unknown precision 'bf16'.*auto, bfloat16, float32"):
        uses_bfloat16("bf16")


def test_float32_is_used_if_torch_does_not_know_what_the_cpu_supports(monkeypatch):
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    monkeypatch.delattr(torch.cpu, "_is_amx_tile_supported", raising=False)
    assert not uses_bfloat16("auto")
