"""The cosine classifier against eq. (1) and (2) written out."""

from __future__ import annotations

import math

import pytest
import torch

from protorect.backbones.cosine_classifier import CosineClassifier


def head_and_features(dim: int = 6, classes: int = 4) -> tuple[CosineClassifier, torch.Tensor]:
    torch.manual_seed(0)
    return CosineClassifier(dim, classes), torch.randn(5, dim)


def test_logits_are_the_scale_times_the_cosines():
    head, features = head_and_features()
    logits = head(features)
    assert logits.shape == (5, 4)
    for n in range(5):
        for c in range(4):
            x, w = features[n].tolist(), head.weight[c].tolist()
            dot = sum(a * b for a, b in zip(x, w, strict=True))
            assert logits[n, c].item() == pytest.approx(
                10 * dot / (math.hypot(*x) * math.hypot(*w)), abs=1e-5
            )


def test_only_directions_count():
    head, features = head_and_features()
    wanted = head(features)
    with torch.no_grad():
        head.weight *= 7
    torch.testing.assert_close(head(features * 1e-3), wanted)


def test_scale_and_weights_learn():
    head, features = head_and_features()
    assert {name for name, _ in head.named_parameters()} == {"weight", "scale"}
    assert CosineClassifier(3, 2, scale=4).scale.item() == 4
    torch.nn.functional.cross_entropy(head(features), torch.tensor([0, 1, 2, 3, 0])).backward()
    assert head.scale.grad.abs() > 0
    assert (head.weight.grad.abs().amax(dim=1) > 0).all()


def test_a_zero_feature_has_no_opinion_and_a_moderate_gradient():
    head, _ = head_and_features()
    features = torch.zeros(2, 6, requires_grad=True)
    logits = head(features)
    assert torch.equal(logits, torch.zeros(2, 4))
    torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1])).backward()
    for held in (features.grad, head.weight.grad, head.scale.grad):
        assert torch.isfinite(held).all()
    assert features.grad.abs().max() < 100


def test_autocast_does_not_cost_precision():
    head, features = head_and_features(dim=640, classes=64)
    wanted = head(features)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = head(features)
        rough = (
            10
            * torch.nn.functional.normalize(features)
            @ torch.nn.functional.normalize(head.weight).T
        )
    assert got.dtype == torch.float32
    assert torch.equal(got, wanted)
    assert (rough - wanted).abs().max() > 1e-3  # so autocast was on


@pytest.mark.parametrize(
    ("given", "got"), [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)]
)
def test_logits_are_float32_or_better(given, got):
    head, features = head_and_features()
    assert head(features.to(given)).dtype == got
