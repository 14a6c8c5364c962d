"""Numbers that must never move: every backbone with weights and pictures made by a formula.

The expected features were computed once by the slow reading in `slow_networks.py`, in float64. If
a network is meant to change one day, write them anew on purpose:
`PYTHONPATH=tests python tests/backbones/test_golden.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from helpers import formula
from helpers.slow_networks import NETWORKS
from protorect.backbones.base import Backbone
from protorect.backbones.registry import BACKBONES, build

GOLDEN = Path(__file__).parent.parent / "golden" / "backbones" / "features.json"
SIZE = 36  # sides 18, 9, 4 or 5, 3 or 2: "same" padding meets even and odd, pools round down
KEPT = 48  # features kept of a picture, evenly spaced
TOLERANCE = 1e-5  # of float32, as a fraction of the root mean square of the features


def filled(name: str, dtype: torch.dtype) -> Backbone:
    network = build(name, channels=3, size=SIZE).eval().to(dtype)
    network.load_state_dict(formula.weights(network))
    return network


def some(features: torch.Tensor) -> torch.Tensor:
    return features[:, torch.arange(KEPT) * features.shape[1] // KEPT]


def slow_features(name: str) -> torch.Tensor:
    shown = formula.pictures(1, 3, SIZE)
    return NETWORKS[name](formula.weights(build(name, size=SIZE)), shown)


def test_every_backbone_is_there():
    assert list(json.loads(GOLDEN.read_text())["features"]) == list(NETWORKS) == list(BACKBONES)


@pytest.mark.parametrize("name", BACKBONES)
def test_features_stay(name):
    held = json.loads(GOLDEN.read_text())["features"][name]
    with torch.no_grad():
        got = filled(name, torch.float32)(formula.pictures(1, 3, SIZE).float())
    rms = held["rms"]
    assert got.square().mean().sqrt().item() == pytest.approx(rms, rel=TOLERANCE)
    torch.testing.assert_close(
        some(got)[0], torch.tensor(held["some"]), rtol=0, atol=TOLERANCE * rms
    )


@pytest.mark.parametrize("name", ["conv256", "resnet12", "efficientnet-lite0"])
def test_every_feature_is_that_of_the_slow_reading(name):
    with torch.no_grad():
        got = filled(name, torch.float64)(formula.pictures(1, 3, SIZE))
    torch.testing.assert_close(got, slow_features(name), rtol=1e-9, atol=1e-9)


def write() -> None:
    """Write the golden file anew, from the slow reading."""
    features = {}
    for name in NETWORKS:
        slow = slow_features(name)
        kept = [round(value, 9) for value in some(slow)[0].tolist()]
        features[name] = {"rms": round(slow.square().mean().sqrt().item(), 9), "some": kept}
    what = f"{KEPT} features of one picture of {SIZE} px, weights by formula; see test_golden.py"
    rows = ",\n".join(f'    "{name}": {json.dumps(held)}' for name, held in features.items())
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(f'{{\n  "what": {json.dumps(what)},\n  "features": {{\n{rows}\n  }}\n}}\n')


if __name__ == "__main__":
    write()
