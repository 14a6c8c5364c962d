"""Trained backbones: the weights in the package, files of weights, and their cards."""

import hashlib

import pytest
import torch

from helpers.packed import save_weights
from protorect import OptionError
from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.weights import TrainedBackbone
from protorect.cli import main

LARGEST_FILE = 3_000_000


@pytest.mark.parametrize("name", pretrained_weights())
def test_weights_in_the_package_are_small_and_their_card_matches(name):
    path = pretrained_weights()[name]
    assert path.stat().st_size < LARGEST_FILE
    card = path.with_suffix(".md").read_text()
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card
    assert "license" in card
    assert "| bd-cspn |" in card
    network = TrainedBackbone.load(name)
    size = network.backbone.size
    with torch.inference_mode():
        features = network.backbone.eval()(torch.rand(2, network.backbone.channels, size, size))
    assert features.isfinite().all()


def test_names_of_pretrained_weights_are_listed(capsys):
    with pytest.raises(SystemExit):
        main(["extract", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "efficientnet-lite0, efficientnet-lite1, efficientnet-lite2, best, " in shown
    assert "omniglot-conv64" in shown
    with pytest.raises(OptionError, match="Did you mean 'omniglot-conv64'?.* Known: .*omniglot-co"):
        TrainedBackbone.load("omniglot-conv46")


def test_preprocessing_inverts_dark_strokes_for_a_network_trained_on_bright_ones(tmp_path):
    network = TrainedBackbone.load(save_weights(tmp_path / "w.safetensors", ink_high=True))
    assert network.preprocessing_for([0.9]).inverted
    assert not network.preprocessing_for([0.1]).inverted
    network = TrainedBackbone.load(save_weights(tmp_path / "w.safetensors", ink_high=False))
    assert not network.preprocessing_for([0.9]).inverted


def test_a_card_that_does_not_say_is_bright_on_dark_if_the_data_are_omniglot(tmp_path):
    for data, expected in (("omniglot", True), ("folder", False)):
        path = save_weights(tmp_path / "w.safetensors", data=data)
        assert TrainedBackbone.load(path).bright_on_dark is expected
    path = save_weights(tmp_path / "w.safetensors", data="omniglot", ink_high=False)
    assert not TrainedBackbone.load(path).bright_on_dark
