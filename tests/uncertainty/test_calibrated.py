"""A method fitted with its calibration classifies new samples, too."""

import copy
import pickle

import numpy as np
import pytest
import torch

from helpers.tasks import task
from protorect.methods import METHODS
from protorect.uncertainty.calibrated import fit_calibrated
from protorect.uncertainty.calibration import Calibration


@pytest.mark.parametrize("name", ["bd-cspn-plus", "cspn", "ridge"])
def test_new_samples_are_classified_as_the_unlabeled_ones(name):
    support, labels, unlabeled, truth = map(torch.from_numpy, task(spread=1.0, distractors=2))
    rule, expected = fit_calibrated(METHODS[name], support, labels, unlabeled)
    for one in (rule, copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):
        new = one.scored(unlabeled)
        probabilities = one.probabilities(new.scores)
        np.testing.assert_allclose(probabilities, rule.probabilities(expected.scores), atol=2e-3)
        np.testing.assert_allclose(one.ood_scores(new), rule.ood_scores(expected), atol=2e-3)
        np.testing.assert_allclose(probabilities.sum(dim=-1), 1, atol=1e-5)
    known = truth < 6
    assert (probabilities[known].argmax(dim=-1) == truth[known]).float().mean() > 0.9


@pytest.mark.parametrize("shots", [1, 2, 4])
def test_examples_alone_calibrate_where_there_are_several_per_class(shots):
    support, labels, unlabeled, truth = map(torch.from_numpy, task(shots=shots, spread=1.0))
    rule, scored = fit_calibrated(METHODS["bd-cspn-plus"], support, labels, unlabeled[:0])
    assert scored.scores.shape == (0, 6)
    probabilities = rule.probabilities(rule.scored(unlabeled).scores)
    assert (probabilities.argmax(dim=-1) == truth).float().mean() > 0.7
    if shots == 1:
        assert rule.calibration == Calibration(temperature=0.1, mean=0.0, deviation=1.0)
    else:
        stated = probabilities.max(dim=-1).values.mean()
        right = (probabilities.argmax(dim=-1) == truth).float().mean()
        assert abs(float(stated - right)) < 0.15


@pytest.mark.parametrize("spread", [1.0, 1.6])
@pytest.mark.parametrize("name", METHODS)
def test_new_samples_are_as_confident_as_unlabeled_ones_of_the_same_classes(name, spread):
    support, labels, samples, _ = map(torch.from_numpy, task(spread=spread, each=80))
    rule, unlabeled = fit_calibrated(METHODS[name], support, labels, samples[::2])
    new = rule.scored(samples[1::2])
    stated = [rule.probabilities(one.scores).amax(dim=-1).mean() for one in (new, unlabeled)]
    assert abs(float(stated[0] - stated[1])) < 0.12
    assert torch.equal(new.scores, rule.new_scores(samples[None, 1::2]))
    assert (rule.score_scale == 1) == METHODS[name].has_rule


@pytest.mark.parametrize("name", [m.name for m in METHODS.values() if not m.has_rule])
def test_examples_alone_calibrate_the_scores_of_new_samples(name):
    support, labels, samples, truth = map(torch.from_numpy, task(spread=1.6))
    rule, _ = fit_calibrated(METHODS[name], support, labels, samples[:0])
    probabilities = rule.probabilities(rule.scored(samples).scores)
    right = (probabilities.argmax(dim=-1) == truth).float().mean()
    assert abs(float(probabilities.amax(dim=-1).mean() - right)) < 0.1


def test_without_calibration_no_example_is_held_out(monkeypatch):
    monkeypatch.setattr("protorect.uncertainty.calibrated.hold_out", None)
    support, labels, unlabeled, _ = map(torch.from_numpy, task())
    rule, _ = fit_calibrated(METHODS["cspn"], support, labels, unlabeled, calibrate=False)
    assert rule.calibration.temperature == 0.1
