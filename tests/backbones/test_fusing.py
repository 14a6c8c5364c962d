"""A fused network gives the same features, and is not used where it would not."""

import pytest
import torch
from torch import nn

from helpers.networks import unlike_new
from protorect.backbones.folding import folded
from protorect.backbones.fusing import FusedConv2d, fused
from protorect.backbones.registry import BACKBONES, build

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch is built without oneDNN"
)


@needs_onednn
@pytest.mark.parametrize("size", [45, 64])  # maps of odd and of even sides
@pytest.mark.parametrize("name", [name for name in BACKBONES if name != "wrn28-10"])
@torch.inference_mode()
def test_the_features_are_the_same(name, size):
    torch.manual_seed(0)
    network = folded(unlike_new(build(name, size=size)))
    pictures = torch.randn(3, 3, size, size)
    quick = fused(network)
    assert any(isinstance(module, FusedConv2d) for module in quick.modules())
    assert not any(type(module) is nn.Conv2d for module in quick.modules())
    torch.testing.assert_close(quick(pictures), network(pictures), rtol=1e-4, atol=1e-4)


@needs_onednn
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.3), nn.Identity()])
@torch.inference_mode()
def test_a_layer_is_convolution_and_activation(activation):
    torch.manual_seed(0)
    conv = nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2)
    maps = 9 * torch.randn(2, 4, 11, 11)
    expected = activation(conv(maps))
    torch.testing.assert_close(FusedConv2d(conv, activation)(maps), expected)


@pytest.mark.parametrize("answer", [lambda *_: torch.zeros(1, 8), "a call of another kind"])
def test_operations_that_changed_are_not_used(monkeypatch, answer):
    monkeypatch.setattr(torch.ops.mkldnn, "_convolution_pointwise", answer)
    network = folded(build("conv64", size=28))
    assert fused(network) is network
