"""The same tests for every registered backbone."""

from __future__ import annotations

import re
from copy import deepcopy
from functools import cache

import pytest
import torch
from torch import nn

from helpers import formula
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.backbones.base import Backbone
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.registry import BACKBONES, build
from protorect.errors import DataError, OptionError

TRAINED_HERE = [name for name, spec in BACKBONES.items() if not spec.pretrained]

DIMS = {  # by the size of the images
    "conv64": {28: 64, 32: 256, 84: 1600},
    "conv128": {28: 128, 32: 512, 84: 3200},
    "conv256": {28: 256, 32: 1024, 84: 6400},
    "resnet12": {28: 640, 32: 640, 84: 640},
    "wrn28-10": {28: 640, 32: 640},  # 84 takes seconds, and nothing in it depends on the size
    "efficientnet-lite0": {28: 1280, 32: 1280, 84: 1280, 224: 1280},
    "efficientnet-lite1": {28: 1280, 240: 1280},
    "efficientnet-lite2": {28: 1280, 260: 1280},
}
SHAPES = [(name, size, dim) for name, dims in DIMS.items() for size, dim in dims.items()]
SIZE = 28


@cache
def shared(name: str) -> Backbone:
    """A network in evaluation mode with weights by formula, for tests that do not change it."""
    network = build(name, size=SIZE)
    network.load_state_dict(formula.weights(network))
    return network.eval().requires_grad_(False)


def own(name: str) -> Backbone:
    """A copy of it, to train or change."""
    return deepcopy(shared(name)).requires_grad_(True)


def images(count: int = 2, channels: int = 3, size: int = SIZE) -> torch.Tensor:
    return formula.images(count, channels, size).float()


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    return ((actual.float() - expected).norm() / expected.norm()).item()


def test_every_backbone_is_tested():
    assert list(DIMS) == list(BACKBONES)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("name", "size", "dim"), SHAPES)
def test_shape(name, size, dim, channels):
    network = build(name, channels=channels, size=size).eval()
    batch = images(1 if name == "wrn28-10" else 2, channels, size)
    with torch.no_grad():
        features = network(batch)
    assert features.shape == (len(batch), dim)
    assert torch.isfinite(features).all()
    assert (network.name, network.channels, network.size, network.dim) == (
        name,
        channels,
        size,
        dim,
    )


@pytest.mark.parametrize("name", BACKBONES)
def test_gradients_reach_every_parameter(name):
    network = own(name).train()
    features = network(images(2 if name == "wrn28-10" else 4))
    # Uneven factors: a plain sum after a batch norm has no gradient.
    (features * formula.pseudo_random(tuple(features.shape), 1).float()).sum().backward()
    for key, parameter in network.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
        assert parameter.grad.abs().max() > 0, key


@pytest.mark.parametrize("name", BACKBONES)
def test_features_depend_on_the_rest_of_the_batch_only_in_training(name):
    network = own(name)
    batch = images(5)  # more than some networks process together
    before = {key: value.clone() for key, value in network.state_dict().items()}
    with torch.no_grad():
        evaluated = network(batch)
        assert relative_error(network(batch[:2]), evaluated[:2]) < 1e-5
        assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
        network.train()
        trained = network(batch)
        assert relative_error(trained, evaluated) > 0.1
        assert relative_error(network(batch[:2]), trained[:2]) > 1e-2
    for key, value in network.state_dict().items():
        if key.endswith("running_mean"):
            assert not torch.equal(value, before[key]), key


@pytest.mark.parametrize("name", BACKBONES)
def test_channels_last_gives_the_same_features(name):
    other = own(name).to(memory_format=torch.channels_last)
    with torch.no_grad():
        features = other(images().contiguous(memory_format=torch.channels_last))
    assert relative_error(features, shared(name)(images())) < 1e-5


@pytest.mark.parametrize("name", BACKBONES)
def test_bfloat16_is_close(name):
    expected = shared(name)(images())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = shared(name)(images())
    assert features.dtype == torch.bfloat16  # else nothing is tested
    assert relative_error(features, expected) < 0.04  # eight bits, rounded dozens of times


@pytest.mark.parametrize("name", TRAINED_HERE)
def test_features_can_be_negative(name):
    negative = shared(name)(images()) < 0
    assert 0.05 < negative.float().mean() < 0.95


def test_a_pretrained_network_repeats_a_grayscale_image_in_three_channels():
    gray = build("efficientnet-lite0", channels=1, size=32).eval()
    color = build("efficientnet-lite0", channels=3, size=32).eval()
    batch = images(2, channels=1, size=32)
    with torch.no_grad():
        assert torch.equal(gray(batch), color(batch.repeat(1, 3, 1, 1)))
    assert gray.preprocessing == Preprocessing((127 / 255,), (128 / 255,))
    assert color.preprocessing == Preprocessing((127 / 255,) * 3, (128 / 255,) * 3)


@pytest.mark.parametrize("name", BACKBONES)
def test_a_seed_determines_initial_weights_and_training(name):
    def trained(seed: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        torch.manual_seed(seed)
        network = build(name, size=SIZE).train()
        initial = {key: value.clone() for key, value in network.named_parameters()}
        with torch.no_grad():
            return initial, network(images())

    weights, features = trained(0)
    same_weights, same_features = trained(0)
    torch.manual_seed(1)
    others = dict(build(name, size=SIZE).named_parameters())
    assert all(torch.equal(weights[key], same_weights[key]) for key in weights)
    assert torch.equal(features, same_features)
    equal = [torch.equal(weights[key], others[key]) for key in weights if weights[key].ndim == 4]
    assert all(equal) if BACKBONES[name].pretrained else not any(equal)


@pytest.mark.parametrize("name", TRAINED_HERE)
def test_initial_weights_are_he_normal_and_batch_norms_the_identity(name):
    torch.manual_seed(0)
    for module in build(name, size=28).modules():
        if isinstance(module, nn.Conv2d):
            outputs, _, height, width = module.weight.shape
            expected = (2 / (outputs * height * width)) ** 0.5
            close = 5 / module.weight.numel() ** 0.5  # five standard errors, and more
            assert module.weight.std().item() == pytest.approx(expected, rel=close)
            assert module.bias is None
        elif isinstance(module, nn.BatchNorm2d):
            assert (module.weight == 1).all()
            assert (module.bias == 0).all()


@pytest.mark.parametrize("name", BACKBONES)
def test_a_checkpoint_restores_the_features(name, tmp_path):
    path = tmp_path / "weights.safetensors"
    save_tensors(path, shared(name).state_dict(), {"kind": "backbone", "name": name})
    tensors, config = load_tensors(path, kind="backbone")
    restored = build(config["name"], size=SIZE).eval()
    with torch.no_grad():
        expected = shared(name)(images(1))
        assert not torch.equal(restored(images(1)), expected)
        restored.load_state_dict(tensors)
        assert torch.equal(restored(images(1)), expected)


def convnet_parameters(widths: list[int]) -> int:
    return sum(9 * i * o + 2 * o for i, o in zip([3, *widths], widths, strict=False))


def resnet12_parameters() -> int:
    pairs = [(3, 64), (64, 160), (160, 320), (320, 640)]
    return sum(9 * (i * o + 2 * o * o) + i * o + 4 * 2 * o for i, o in pairs)


def wide_resnet_parameters() -> int:
    count = 9 * 3 * 16 + 2 * 640  # stem and last norm
    for i, o in [(16, 160), (160, 320), (320, 640)]:
        count += 2 * i + 9 * i * o + 2 * o + 9 * o * o + i * o  # the block that widens
        count += 3 * (2 * 2 * o + 2 * 9 * o * o)
    return count


def lite_parameters(widths: list[int], depths: list[int]) -> int:
    count, i = 9 * 3 * 32 + 2 * 32, 32
    expansions, kernels = [1, 6, 6, 6, 6, 6, 6], [3, 3, 5, 3, 5, 5, 3]
    for expansion, kernel, o, blocks in zip(expansions, kernels, widths, depths, strict=True):
        for _ in range(blocks):
            inner = expansion * i
            count += (i * inner + 2 * inner) if expansion > 1 else 0
            count += kernel**2 * inner + 2 * inner + inner * o + 2 * o
            i = o
    return count + widths[-1] * 1280 + 2 * 1280


LITE0 = [16, 24, 40, 80, 112, 192, 320], [1, 2, 2, 3, 3, 4, 1]
LITE1 = [16, 24, 40, 80, 112, 192, 320], [1, 3, 3, 4, 4, 5, 1]
LITE2 = [16, 24, 48, 88, 120, 208, 352], [1, 3, 3, 4, 4, 5, 1]


@pytest.mark.parametrize(
    ("name", "by_hand", "count"),
    [
        ("conv64", convnet_parameters([64, 64, 64, 64]), 112_832),
        ("conv128", convnet_parameters([64, 64, 128, 128]), 260_544),
        ("conv256", convnet_parameters([64, 96, 128, 256]), 463_616),
        ("resnet12", resnet12_parameters(), 12_424_320),
        ("wrn28-10", wide_resnet_parameters(), 36_472_784),
        ("efficientnet-lite0", lite_parameters(*LITE0), 3_371_008),
        ("efficientnet-lite1", lite_parameters(*LITE1), 4_135_680),
        ("efficientnet-lite2", lite_parameters(*LITE2), 4_811_072),
    ],
)
def test_number_of_parameters(name, by_hand, count):
    assert sum(parameter.numel() for parameter in shared(name).parameters()) == by_hand == count


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("size", [27, 0, -84, 84.5, "84"])
def test_a_wrong_size_is_refused(name, size):
    with pytest.raises(OptionError, match=f"size is {size!r}; {name} takes pictures of 28 x 28"):
        build(name, size=size)


@pytest.mark.parametrize("channels", [0, 2, 4])
def test_a_wrong_number_of_channels_is_refused(channels):
    with pytest.raises(OptionError, match=f"channels is {channels}; conv64 takes 1 .* or 3"):
        build("conv64", channels=channels)


@pytest.mark.parametrize("shape", [(2, 1, 28, 28), (2, 3, 32, 32), (2, 3, 28, 32), (3, 28, 28)])
def test_images_of_another_shape_are_refused(shape):
    message = f"built for pictures (n, 3, 28, 28) and got {shape}"
    with pytest.raises(DataError, match=re.escape(message)):
        shared("conv64")(torch.zeros(shape))


def test_an_unknown_name_is_refused_and_the_nearest_suggested():
    with pytest.raises(OptionError, match="unknown backbone 'resnet-12'.*mean 'resnet12'"):
        build("resnet-12")


def test_the_default_size_is_84_or_that_of_the_pretrained_weights():
    assert build("conv64").size == 84
    assert [build(f"efficientnet-lite{n}").size for n in range(3)] == [224, 240, 260]
