"""A folded network gives the same features."""

import pytest
import torch
from torch import nn

from helpers.networks import unlike_new
from protorect.backbones.folding import folded
from protorect.backbones.registry import BACKBONES, build


@pytest.mark.parametrize("name", [name for name in BACKBONES if name != "wrn28-10"])
@torch.inference_mode()
def test_the_features_are_the_same(name):
    torch.manual_seed(0)
    network = unlike_new(build(name, size=45))
    pictures = torch.randn(2, 3, 45, 45)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    expected = network(pictures)
    torch.testing.assert_close(folded(network)(pictures), expected, rtol=2e-3, atol=2e-3)
    for key, value in network.state_dict().items():
        assert torch.equal(value, before[key])


def test_every_batch_norm_behind_a_convolution_is_gone():
    network = folded(build("efficientnet-lite0"))
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())
