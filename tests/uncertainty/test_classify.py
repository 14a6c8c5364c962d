"""Labels come with calibrated probabilities and out-of-distribution scores."""

import copy
import pickle

import numpy as np
import pytest
import torch

from helpers.tasks import task
from protorect.methods import METHODS
from protorect.uncertainty.classify import classify, fit_calibrated, method_for


def calibration_error(probability, correct):
    bins = np.clip((probability * 10).astype(int), 0, 9)
    return sum(
        abs((probability - correct)[bins == b].sum()) for b in range(10) if (bins == b).any()
    ) / len(correct)


@pytest.mark.parametrize("name", ["bd-cspn-plus", "bd-cspn-classes", "bd-cspn", "cspn", "bd-i"])
def test_probabilities_are_calibrated(name):
    errors = []
    for seed in range(4):
        support, labels, unlabeled, truth = task(ways=8, spread=2.0, seed=seed)
        result = classify(support, labels, unlabeled, name)
        errors.append(calibration_error(result.probability, result.best == truth))
        assert result.method == name
    assert np.mean(errors) < 0.09


def test_distractors_score_high_and_few_samples_of_the_classes_do():
    mistakes, detected = [], []
    for seed in range(6):
        support, labels, unlabeled, truth = task(ways=6, spread=1.0, distractors=3, seed=seed)
        ood = classify(support, labels, unlabeled).ood
        assert ((ood >= 0) & (ood <= 1)).all()
        mistakes.append((ood[truth < 6] > 0.9).mean())
        detected.append((ood[truth >= 6] > 0.9).mean())
    assert np.mean(detected) > 0.9
    assert 0.02 < np.mean(mistakes) < 0.25


def test_few_unlabeled_samples_do_not_rectify_the_prototypes():
    assert method_for(None, 11, 6).name == "cspn"
    assert method_for(None, 12, 6).name == "bd-cspn-plus"
    assert method_for("bd-c", 1, 6).name == "bd-c"
    support, labels, unlabeled, truth = task(spread=0.5)
    assert classify(support, labels, unlabeled[:1]).best.tolist() == truth[:1].tolist()


def test_one_example_per_class_and_one_unlabeled_sample():
    support, labels, unlabeled, truth = task(shots=1, spread=0.3)
    result = classify(support, labels, unlabeled[:1])
    assert result.best[0] == truth[0]
    assert 0 <= result.probability[0] <= 1


@pytest.mark.parametrize("name", ["bd-cspn-plus", "cspn", "ridge"])
def test_new_samples_are_classified_as_the_unlabeled_ones(name):
    support, labels, unlabeled, truth = task(spread=1.0, distractors=2)
    parts = [torch.from_numpy(part) for part in (support, labels, unlabeled)]
    samples = parts[2][None]
    fit = fit_calibrated(METHODS[name], parts[0][None], parts[1], samples)
    expected = classify(support, labels, unlabeled, name)
    for one in (fit, copy.deepcopy(fit), pickle.loads(pickle.dumps(fit))):
        new = one.classify(samples.clone())
        assert (new.best == expected.best).mean() > 0.99
        np.testing.assert_allclose(new.probability, expected.probability, atol=2e-3)
        np.testing.assert_allclose(new.ood, expected.ood, atol=2e-3)
    known = truth < 6
    probabilities = fit.probabilities(samples[:, known])
    np.testing.assert_allclose(probabilities.sum(dim=-1), 1, atol=1e-5)
    assert (probabilities.argmax(dim=-1).numpy() == truth[known]).mean() > 0.9


@pytest.mark.parametrize("shots", [1, 4])
def test_examples_alone_calibrate_where_there_are_several_per_class(shots):
    support, labels, unlabeled, truth = task(shots=shots, spread=1.0)
    examples, known = torch.from_numpy(support)[None], torch.from_numpy(labels)
    fit = fit_calibrated(METHODS["bd-cspn-plus"], examples, known, examples[:, :0])
    result = fit.classify(torch.from_numpy(unlabeled)[None])
    assert (result.best == truth).mean() > 0.7
    assert fit.classify(examples[:, :0]).best.shape == (0,)
    if shots > 1:
        assert calibration_error(result.probability, result.best == truth) < 0.15
