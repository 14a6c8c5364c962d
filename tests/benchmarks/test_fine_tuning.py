"""Transductive fine-tuning is measured in both forms, with paired differences."""

import numpy as np
import torch

from benchmarks import base_classifier, fine_tuning
from helpers.packed import pack_noise, save_weights
from protorect import evaluate, load_features, sample_episodes
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.extract import extract


def test_both_forms_are_measured_on_a_network_with_a_fitted_classifier(tmp_path, monkeypatch):
    packed, weights = tmp_path / "packed", tmp_path / "w.safetensors"
    pack_noise(packed, 120, classes=6, splits=("train", "test"))
    save_weights(weights)
    for split in ("train", "test"):
        extract(weights, packed, tmp_path / f"{split}.npz", split=split)
    out = tmp_path / "with.safetensors"
    line = ["base_classifier", str(weights), str(tmp_path / "train.npz"), str(out)]
    monkeypatch.setattr("sys.argv", line)
    base_classifier.main()
    assert TrainedBackbone.load(out).digest == TrainedBackbone.load(weights).digest

    features = str(tmp_path / "test.npz")
    job = (features, str(out), str(packed), 2, "tft:layer=logits,updates=separate,iterations=1", 1)
    tuned, *_ = fine_tuning.measure(job)
    _, labels = load_features(features)
    episodes = sample_episodes(labels, shot=5, episodes=2)
    cspn = evaluate(features, None, "cspn", shot=1, episodes=episodes)[0]
    assert np.isclose(tuned["accuracy"] - tuned["differences"]["cspn"][0], cspn.accuracy)


def test_a_fitted_classifier_separates_what_can_be_separated():
    torch.manual_seed(0)
    labels = torch.arange(300) % 6
    features = torch.eye(6)[labels] + torch.randn(300, 6) / 10
    classifier = base_classifier.fit(features, labels, 6)
    assert (classifier(features).argmax(dim=1) == labels).all()
