"""The examples left out say how sure an answer is."""

import numpy as np
import pytest
import torch

from helpers.tasks import task
from protorect.errors import OptionError
from protorect.methods import METHODS
from protorect.uncertainty import calibration
from protorect.uncertainty.calibration import fitted_temperature, leave_one_out
from protorect.uncertainty.predict import chosen_method, classify
from protorect.uncertainty.thresholds import Thresholds
from reference.calibration import negative_log_likelihood


def test_the_temperature_is_the_likeliest_one(monkeypatch):
    monkeypatch.setattr(calibration, "PRIOR", 0.0)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 4)).astype(np.float32)
    powers = np.exp(2.5 * scores)
    labels = np.array([rng.choice(4, p=row / row.sum()) for row in powers])
    found = fitted_temperature(torch.from_numpy(scores), torch.from_numpy(labels))
    best = negative_log_likelihood(scores.tolist(), labels.tolist(), found)
    for factor in np.linspace(0.5, 6, 60):
        assert best <= negative_log_likelihood(scores.tolist(), labels.tolist(), factor) + 1e-4
    assert 1.8 < found < 3.3


def test_no_mistake_still_gives_a_finite_temperature():
    scores = torch.eye(4)[torch.arange(40) % 4]
    assert fitted_temperature(scores, torch.arange(40) % 4) < 100


def test_scores_of_any_scale_are_calibrated_alike():
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.normal(size=(100, 3)).astype(np.float32))
    labels = torch.from_numpy(rng.integers(0, 3, 100))
    labels[:60] = scores[:60].argmax(dim=1)
    small = fitted_temperature(scores, labels)
    large = fitted_temperature(1000 * scores, labels)
    assert small == pytest.approx(1000 * large, rel=0.01)


@pytest.mark.parametrize("shots", [1, 2, 5])
def test_every_example_is_left_out_once(shots):
    support, labels, pile, _ = map(torch.from_numpy, task(shots=shots))
    method = METHODS["bd-cspn-classes"]
    scores = method(support[None], labels, pile[None])[0]
    left = leave_one_out(method, method, support, labels, pile, scores)
    assert left.scores.shape == (6 * shots, 6)
    assert sorted(left.labels.tolist()) == sorted(labels.tolist())
    assert (left.scores.argmax(dim=1) == left.labels).float().mean() > 0.7


def test_an_example_is_not_classified_by_itself():
    """Examples of pure noise: with itself in its prototype each would be recognised."""
    rng = np.random.default_rng(0)
    support = torch.from_numpy(rng.normal(size=(40, 256)).astype(np.float32))
    labels = torch.arange(40) % 20
    pile = torch.from_numpy(rng.normal(size=(200, 256)).astype(np.float32))
    method = METHODS["cspn"]
    scores = method(support[None], labels, pile[None])[0]
    left = leave_one_out(method, method, support, labels, pile, scores)
    assert (left.scores.argmax(dim=1) == left.labels).float().mean() < 0.2


def calibration_error(probability, right):
    bins = np.clip((probability * 10).astype(int), 0, 9)
    return sum(
        abs((probability - right)[bins == b].sum()) for b in range(10) if (bins == b).any()
    ) / len(right)


@pytest.mark.parametrize("name", ["bd-cspn-plus", "bd-cspn-classes", "bd-cspn", "cspn", "bd-i"])
def test_probabilities_mean_what_they_say(name):
    errors = []
    for seed in range(4):
        support, labels, pile, truth = task(ways=8, spread=2.0, seed=seed)
        found = classify(support, labels, pile, name)
        errors.append(calibration_error(found.probability, found.best == truth))
        assert found.method == name
    assert np.mean(errors) < 0.09


def test_foreign_pictures_are_unfamiliar_and_the_share_of_mistakes_is_what_was_asked_for():
    mistakes, caught = [], []
    for seed in range(6):
        support, labels, pile, truth = task(ways=6, spread=1.0, foreign=3, seed=seed)
        found = classify(support, labels, pile)
        mistakes.append((found.familiarity[truth < 6] < 0.1).mean())
        caught.append((found.familiarity[truth >= 6] < 0.1).mean())
    assert np.mean(caught) > 0.9
    assert 0.02 < np.mean(mistakes) < 0.25


def test_a_handful_is_not_used_to_correct_the_examples():
    assert chosen_method(None, 11, 6).name == "cspn"
    assert chosen_method(None, 12, 6).name == "bd-cspn-plus"
    assert chosen_method("bd-c", 1, 6).name == "bd-c"
    support, labels, pile, truth = task(spread=0.5)
    one = classify(support, labels, pile[:1])
    assert one.best.tolist() == truth[:1].tolist()


def test_one_example_a_class_and_one_picture():
    support, labels, pile, truth = task(shots=1, spread=0.3)
    found = classify(support, labels, pile[:1])
    assert found.best[0] == truth[0]
    assert 0 <= found.probability[0] <= 1


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "often"])
def test_thresholds_lie_between_nothing_and_one(value):
    with pytest.raises(OptionError, match=r"must lie in 0 .. 1"):
        Thresholds(unknown=value)
