"""The cosine classifier against eq. (1) and (2) in plain Python."""

from __future__ import annotations

import math

import pytest
import torch

from protorect.backbones.cosine_classifier import CosineClassifier


def classifier_and_features(
    dim: int = 6, classes: int = 4
) -> tuple[CosineClassifier, torch.Tensor]:
    torch.manual_seed(0)
    return CosineClassifier(dim, classes), torch.randn(5, dim)


def test_logits_are_the_scale_times_the_cosines():
    classifier, features = classifier_and_features()
    logits = classifier(features)
    assert logits.shape == (5, 4)
    for n in range(5):
        for c in range(4):
            x, w = features[n].tolist(), classifier.weight[c].tolist()
            dot = sum(a * b for a, b in zip(x, w, strict=True))
            assert logits[n, c].item() == pytest.approx(
                10 * dot / (math.hypot(*x) * math.hypot(*w)), abs=1e-5
            )


def test_only_directions_matter():
    classifier, features = classifier_and_features()
    expected = classifier(features)
    with torch.no_grad():
        classifier.weight *= 7
    torch.testing.assert_close(classifier(features * 1e-3), expected)


def test_scale_and_weights_are_trained():
    classifier, features = classifier_and_features()
    assert {name for name, _ in classifier.named_parameters()} == {"weight", "scale"}
    assert CosineClassifier(3, 2, scale=4).scale.item() == 4
    torch.nn.functional.cross_entropy(
        classifier(features), torch.tensor([0, 1, 2, 3, 0])
    ).backward()
    assert classifier.scale.grad.abs() > 0
    assert (classifier.weight.grad.abs().amax(dim=1) > 0).all()


def test_a_zero_feature_has_equal_logits_and_a_moderate_gradient():
    classifier, _ = classifier_and_features()
    features = torch.zeros(2, 6, requires_grad=True)
    logits = classifier(features)
    assert torch.equal(logits, torch.zeros(2, 4))
    torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1])).backward()
    for gradient in (features.grad, classifier.weight.grad, classifier.scale.grad):
        assert torch.isfinite(gradient).all()
    assert features.grad.abs().max() < 100


def test_autocast_does_not_cost_precision():
    classifier, features = classifier_and_features(dim=640, classes=64)
    expected = classifier(features)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = classifier(features)
        rough = (
            10
            * torch.nn.functional.normalize(features)
            @ torch.nn.functional.normalize(classifier.weight).T
        )
    assert logits.dtype == torch.float32
    assert torch.equal(logits, expected)
    assert (rough - expected).abs().max() > 1e-3  # so autocast was on


@pytest.mark.parametrize(
    ("dtype", "expected"), [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)]
)
def test_logits_are_float32_or_better(dtype, expected):
    classifier, features = classifier_and_features()
    assert classifier(features.to(dtype)).dtype == expected
