"""A network optimized for inference gives the same features."""

import pytest
import torch
from torch import nn

from helpers.networks import with_trained_batch_norms
from protorect.backbones.inference import (
    batch_size,
    fold_batch_norms,
    optimize,
    uses_bfloat16,
)
from protorect.backbones.registry import BACKBONES, build
from protorect.errors import OptionError

# Its batch norms stand before convolutions, so there is nothing to fold.
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


def test_an_optimized_network_is_a_folded_copy():
    network = build("conv64", size=28)
    copy = optimize(network, device="cpu")
    assert not any(isinstance(module, nn.BatchNorm2d) for module in copy.modules())
    assert any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def test_batches_are_sized_by_the_memory_of_the_device(monkeypatch):
    network, gigabyte = build("conv64", size=84), 2**30
    assert batch_size(network) == 2**18 // 84**2
    for free, expected in ((32 * gigabyte, 256), (gigabyte, 37), (0.2 * gigabyte, 7), (1, 1)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, free=free: (int(free), 0))
        assert batch_size(network, "cuda") == expected


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
