"""Held-out examples calibrate the probabilities."""

import numpy as np
import pytest
import torch

from helpers.tasks import task
from protorect.methods import METHODS
from protorect.uncertainty import calibration
from protorect.uncertainty.calibration import fit_temperature, hold_out
from reference.calibration import negative_log_likelihood


def test_the_temperature_minimizes_the_negative_log_likelihood(monkeypatch):
    monkeypatch.setattr(calibration, "PRIOR", 0.0)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 4)).astype(np.float32)
    powers = np.exp(scores / 0.4)
    labels = np.array([rng.choice(4, p=row / row.sum()) for row in powers])
    fitted = fit_temperature(torch.from_numpy(scores), torch.from_numpy(labels))
    best = negative_log_likelihood(scores.tolist(), labels.tolist(), fitted)
    for temperature in 1 / np.linspace(0.5, 6, 60):
        other = negative_log_likelihood(scores.tolist(), labels.tolist(), temperature)
        assert best <= other + 1e-4
    assert 1 / 3.3 < fitted < 1 / 1.8


def test_without_a_mistake_the_temperature_is_not_zero():
    scores = torch.eye(4)[torch.arange(40) % 4]
    assert fit_temperature(scores, torch.arange(40) % 4) > 0.01


def test_the_temperature_scales_with_the_scores():
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.normal(size=(100, 3)).astype(np.float32))
    labels = torch.from_numpy(rng.integers(0, 3, 100))
    labels[:60] = scores[:60].argmax(dim=1)
    small, large = fit_temperature(scores, labels), fit_temperature(1000 * scores, labels)
    assert large == pytest.approx(1000 * small, rel=0.01)


@pytest.mark.parametrize("shots", [1, 2, 5, 40])
def test_every_example_is_held_out_once(shots):
    support, labels, unlabeled, _ = map(torch.from_numpy, task(shots=shots))
    method, tasks = METHODS["bd-cspn-classes"], []
    scores = method(support[None], labels, unlabeled[None])[0]

    def counted(*task):
        tasks.append(task)
        return method(*task)

    held_out = hold_out(counted, counted, support, labels, unlabeled, scores)
    assert len(tasks) <= 2 * calibration.TASKS
    assert held_out.scores.shape == (6 * shots, 6)
    assert sorted(held_out.labels.tolist()) == sorted(labels.tolist())
    assert (held_out.scores.argmax(dim=1) == held_out.labels).float().mean() > 0.7


def test_a_held_out_example_is_not_in_its_prototype():
    """Examples of pure noise: each would be recognized by a prototype that includes it."""
    rng = np.random.default_rng(0)
    support = torch.from_numpy(rng.normal(size=(40, 256)).astype(np.float32))
    labels = torch.arange(40) % 20
    unlabeled = torch.from_numpy(rng.normal(size=(200, 256)).astype(np.float32))
    method = METHODS["cspn"]
    scores = method(support[None], labels, unlabeled[None])[0]
    held_out = hold_out(method, method, support, labels, unlabeled, scores)
    assert (held_out.scores.argmax(dim=1) == held_out.labels).float().mean() < 0.2
