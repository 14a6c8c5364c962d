"""A folded network gives the same features."""

import pytest
import torch
from torch import nn

from protorect.backbones import BACKBONES, build
from protorect.backbones.folding import folded


def unlike_new(network):
    """Batch norms as after training: none is the identity."""
    torch.manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
            nn.init.normal_(module.running_mean, 0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return network.eval()


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
