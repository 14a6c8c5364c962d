"""Labels come with calibrated probabilities and out-of-distribution scores."""

import numpy as np
import pytest

from helpers.tasks import task
from protorect.uncertainty.classify import classify, method_for


def calibration_error(probability, correct):
    bins = np.clip((probability * 10).astype(int), 0, 9)
    return sum(
        abs((probability - correct)[bins == b].sum()) for b in range(10) if (bins == b).any()
    ) / len(correct)


@pytest.mark.parametrize("name", ["bd-cspn-plus", "bd-cspn-classes", "bd-cspn", "cspn", "bd-i"])
def test_probabilities_are_calibrated(name):
    errors = []
    for seed in range(12):
        support, labels, unlabeled, truth = task(ways=8, spread=2.0, seed=seed)
        result = classify(support, labels, unlabeled, name)
        errors.append(calibration_error(result.probability, result.best == truth))
        assert result.method == name
    assert np.mean(errors) < 0.085


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
