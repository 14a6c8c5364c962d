"""Features that must not change: every backbone with weights and images made by a formula.

The expected features were computed once by the independent implementations in
`reference/backbones.py`, in float64. If a network is meant to change, write them again by
`PYTHONPATH=tests python tests/backbones/test_golden.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from helpers import formula
from protorect.backbones.base import Backbone
from protorect.backbones.registry import BACKBONES, build
from reference.backbones import NETWORKS

GOLDEN = Path(__file__).parent.parent / "golden" / "backbones" / "features.json"
SIZE = 36  # sides 18, 9, 4 or 5, 3 or 2: even and odd ones, so that pools round down
COUNT = 48  # features per image in the file, evenly spaced
TOLERANCE = 1e-5  # of float32, as a fraction of the root mean square of the features
EXACT = ("conv256", "resnet12", *(f"efficientnet-lite{n}" for n in range(3)))
DEEPER = {"efficientnet-lite1": 2, "efficientnet-lite2": 2}  # times that: 61 layers round, not 49


def filled(name: str, dtype: torch.dtype) -> Backbone:
    network = build(name, channels=3, size=SIZE).eval().to(dtype)
    network.load_state_dict(formula.weights(network))
    return network


def subset(features: torch.Tensor) -> torch.Tensor:
    return features[:, torch.arange(COUNT) * features.shape[1] // COUNT]


def reference_features(name: str) -> torch.Tensor:
    images = formula.images(1, 3, SIZE)
    return NETWORKS[name](formula.weights(build(name, size=SIZE)), images)


def test_every_backbone_is_in_the_file():
    assert list(json.loads(GOLDEN.read_text())["features"]) == list(NETWORKS) == list(BACKBONES)


@pytest.mark.parametrize("name", BACKBONES)
def test_features_have_not_changed(name):
    golden = json.loads(GOLDEN.read_text())["features"][name]
    with torch.no_grad():
        features = filled(name, torch.float32)(formula.images(1, 3, SIZE).float())
    rms, tolerance = golden["rms"], TOLERANCE * DEEPER.get(name, 1)
    assert features.square().mean().sqrt().item() == pytest.approx(rms, rel=TOLERANCE)
    torch.testing.assert_close(
        subset(features)[0], torch.tensor(golden["some"]), rtol=0, atol=tolerance * rms
    )


@pytest.mark.parametrize(
    "name", ["conv256", "resnet12", "efficientnet-lite0", "efficientnet-lite2"]
)
def test_every_feature_equals_that_of_the_reference(name):
    with torch.no_grad():
        features = filled(name, torch.float64)(formula.images(1, 3, SIZE))
    torch.testing.assert_close(features, reference_features(name), rtol=1e-9, atol=1e-9)


def write() -> None:
    """Write the golden file again, by the reference implementations."""
    features = {}
    for name in NETWORKS:
        expected = reference_features(name)
        values = [round(value, 9) for value in subset(expected)[0].tolist()]
        features[name] = {"rms": round(expected.square().mean().sqrt().item(), 9), "some": values}
    what = f"{COUNT} features of one picture of {SIZE} px, weights by formula; see test_golden.py"
    rows = ",\n".join(f'    "{name}": {json.dumps(record)}' for name, record in features.items())
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(f'{{\n  "what": {json.dumps(what)},\n  "features": {{\n{rows}\n  }}\n}}\n')


if __name__ == "__main__":
    write()
