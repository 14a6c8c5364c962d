"""Every registered backbone is put through the same tests."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import nn

from helpers import formula
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.backbones.base import Backbone
from protorect.backbones.registry import BACKBONES, build
from protorect.errors import DataError, OptionError

TRAINED_HERE = [name for name, spec in BACKBONES.items() if not spec.pretrained]

DIMS = {  # by the size of the pictures
    "conv64": {28: 64, 32: 256, 84: 1600},
    "conv128": {28: 128, 32: 512, 84: 3200},
    "conv256": {28: 256, 32: 1024, 84: 6400},
    "resnet12": {28: 640, 32: 640, 84: 640},
    "wrn28-10": {28: 640, 32: 640},  # 84 takes seconds, and nothing in it depends on the size
    "efficientnet-lite0": {28: 1280, 32: 1280, 84: 1280, 224: 1280},
}
SHAPES = [(name, size, dim) for name, dims in DIMS.items() for size, dim in dims.items()]


def with_formula(name: str, channels: int = 3, size: int = 32) -> Backbone:
    """A new network whose batch norms do something and whose weights are no draw."""
    network = build(name, channels=channels, size=size)
    network.load_state_dict(formula.weights(network))
    return network


@cache
def ready(name: str) -> Backbone:
    """The same in evaluation mode, shared by tests that leave it as it is."""
    return with_formula(name).eval().requires_grad_(False)


def shown(count: int = 2, channels: int = 3, size: int = 32) -> torch.Tensor:
    return formula.pictures(count, channels, size).float()


def relative_error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    return ((got.float() - wanted).norm() / wanted.norm()).item()


def test_every_backbone_is_tested():
    assert list(DIMS) == list(BACKBONES)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("name", "size", "dim"), SHAPES)
def test_shape(name, size, dim, channels):
    network = build(name, channels=channels, size=size).eval()
    with torch.no_grad():
        features = network(shown(2, channels, size))
    assert features.shape == (2, dim)
    assert torch.isfinite(features).all()
    assert (network.name, network.channels, network.size, network.dim) == (
        name,
        channels,
        size,
        dim,
    )


@pytest.mark.parametrize("name", BACKBONES)
def test_gradients_reach_every_parameter(name):
    network = with_formula(name).train()
    features = network(shown(4))
    # Uneven factors: a plain sum behind a batch norm has no gradient.
    (features * formula.spread(tuple(features.shape), 1).float()).sum().backward()
    for parameter, held in network.named_parameters():
        assert held.grad is not None, parameter
        assert torch.isfinite(held.grad).all(), parameter
        assert held.grad.abs().max() > 0, parameter


@pytest.mark.parametrize("name", BACKBONES)
def test_a_picture_counts_its_company_only_in_training(name):
    network = with_formula(name)
    together, alone = shown(6), shown(6)[:2]  # more than some networks look at together
    before = {key: held.clone() for key, held in network.state_dict().items()}
    with torch.no_grad():
        network.eval()
        evaluated = network(together)
        assert relative_error(network(alone), evaluated[:2]) < 1e-5
        assert all(torch.equal(held, before[key]) for key, held in network.state_dict().items())
        network.train()
        trained = network(together)
        assert relative_error(trained, evaluated) > 0.1
        assert relative_error(network(alone), trained[:2]) > 1e-2
    for key, held in network.state_dict().items():
        if key.endswith("running_mean"):
            assert not torch.equal(held, before[key]), key


@pytest.mark.parametrize("name", BACKBONES)
def test_channels_last_gives_the_same(name):
    pictures = shown()
    other = with_formula(name).eval().to(memory_format=torch.channels_last)
    with torch.no_grad():
        got = other(pictures.contiguous(memory_format=torch.channels_last))
    assert relative_error(got, ready(name)(pictures)) < 1e-5


@pytest.mark.parametrize("name", BACKBONES)
def test_bfloat16_is_close(name):
    wanted = ready(name)(shown())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = ready(name)(shown())
    assert got.dtype == torch.bfloat16  # or nothing was tested
    assert relative_error(got, wanted) < 0.04  # eight bits, rounded dozens of times


@pytest.mark.parametrize("name", TRAINED_HERE)
def test_features_can_be_negative(name):
    negative = ready(name)(shown()) < 0
    assert 0.05 < negative.float().mean() < 0.95


def test_a_grey_picture_is_three_equal_channels_to_a_pretrained_network():
    grey = build("efficientnet-lite0", channels=1, size=32).eval()
    colour = build("efficientnet-lite0", channels=3, size=32).eval()
    pictures = shown(2, channels=1)
    with torch.no_grad():
        assert torch.equal(grey(pictures), colour(pictures.repeat(1, 3, 1, 1)))
    assert grey.mean == (127 / 255,)
    assert colour.mean == (127 / 255,) * 3
    assert colour.std == (128 / 255,) * 3


@pytest.mark.parametrize("name", BACKBONES)
def test_a_seed_decides_weights_and_training(name):
    def trained(seed: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        torch.manual_seed(seed)
        network = build(name, size=28).train()
        first = {key: held.clone() for key, held in network.named_parameters()}
        with torch.no_grad():
            return first, network(shown(2, size=28))

    weights, features = trained(0)
    again, features_again = trained(0)
    others, _ = trained(1)
    assert all(torch.equal(weights[key], again[key]) for key in weights)
    assert torch.equal(features, features_again)
    same = [torch.equal(weights[key], others[key]) for key in weights if weights[key].ndim == 4]
    assert all(same) if BACKBONES[name].pretrained else not any(same)


@pytest.mark.parametrize("name", TRAINED_HERE)
def test_first_weights_are_he_normal_and_batch_norms_the_identity(name):
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
def test_a_checkpoint_brings_it_back(name, tmp_path):
    path = tmp_path / "weights.safetensors"
    network = ready(name)
    save_tensors(path, network.state_dict(), {"kind": "backbone", "name": name})
    tensors, config = load_tensors(path, kind="backbone")
    again = build(config["name"], size=32).eval()
    with torch.no_grad():
        assert not torch.equal(again(shown()), network(shown()))
        again.load_state_dict(tensors)
        assert torch.equal(again(shown()), network(shown()))


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


def lite0_parameters() -> int:
    count, i = 9 * 3 * 32 + 2 * 32, 32
    rows = [(1, 3, 16, 1), (6, 3, 24, 2), (6, 5, 40, 2), (6, 3, 80, 3)]
    rows += [(6, 5, 112, 3), (6, 5, 192, 4), (6, 3, 320, 1)]
    for expansion, kernel, o, blocks in rows:
        for _ in range(blocks):
            inner = expansion * i
            count += (i * inner + 2 * inner) if expansion > 1 else 0
            count += kernel**2 * inner + 2 * inner + inner * o + 2 * o
            i = o
    return count + 320 * 1280 + 2 * 1280


@pytest.mark.parametrize(
    ("name", "by_hand", "count"),
    [
        ("conv64", convnet_parameters([64, 64, 64, 64]), 112_832),
        ("conv128", convnet_parameters([64, 64, 128, 128]), 260_544),
        ("conv256", convnet_parameters([64, 96, 128, 256]), 463_616),
        ("resnet12", resnet12_parameters(), 12_424_320),
        ("wrn28-10", wide_resnet_parameters(), 36_472_784),
        ("efficientnet-lite0", lite0_parameters(), 3_371_008),
    ],
)
def test_parameters(name, by_hand, count):
    assert sum(held.numel() for held in ready(name).parameters()) == by_hand == count


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("size", [27, 0, -84, 84.5, "84"])
def test_a_wrong_size_is_refused(name, size):
    with pytest.raises(OptionError, match=f"size is {size!r}; {name} takes pictures of 28 x 28"):
        build(name, size=size)


@pytest.mark.parametrize("channels", [0, 2, 4])
def test_a_wrong_number_of_channels_is_refused(channels):
    with pytest.raises(OptionError, match=f"channels is {channels}; conv64 takes 1 .* or 3"):
        build("conv64", channels=channels)


@pytest.mark.parametrize("shape", [(2, 1, 32, 32), (2, 3, 28, 28), (2, 3, 32, 28), (3, 32, 32)])
def test_pictures_of_another_shape_are_refused(shape):
    got = str(shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(DataError, match=rf"built for pictures \(n, 3, 32, 32\) and got {got}"):
        ready("conv64")(torch.zeros(shape))


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(OptionError, match="unknown backbone 'resnet-12'.*mean 'resnet12'"):
        build("resnet-12")


def test_the_size_is_84_or_what_the_weights_want():
    assert build("conv64").size == 84
    assert build("efficientnet-lite0").size == 224
