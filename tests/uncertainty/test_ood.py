"""Similarity to the classes finds distractors, near and far."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from helpers.tasks import task
from protorect.uncertainty import ood
from protorect.uncertainty.classify import classify
from protorect.uncertainty.ood import fit_similarity
from reference.calibration import similarities


def small_task(n_unlabeled, seed=0, non_negative=False):
    rng = np.random.default_rng(seed)
    support, labels = rng.normal(size=(6, 5)), np.array([0, 0, 1, 1, 2, 2])
    unlabeled, new = rng.normal(size=(n_unlabeled, 5)), 3 * rng.normal(size=(4, 5))
    unknown = rng.normal(size=(2, 5))
    parts = [support, labels, unlabeled, new, unknown]
    return [np.abs(part) for part in parts] if non_negative else parts


@pytest.mark.parametrize("n_unlabeled", [0, 3, 30])
@pytest.mark.parametrize("non_negative", [False, True])
@pytest.mark.parametrize("with_unknown", [False, True])
def test_similarities_equal_the_slow_reference(n_unlabeled, non_negative, with_unknown):
    support, labels, unlabeled, new, unknown = small_task(n_unlabeled, non_negative=non_negative)
    unknown = unknown if with_unknown else unknown[:0]
    parts = [torch.from_numpy(part) for part in (support, labels, unlabeled, unknown)]
    rule, _, _ = fit_similarity(*parts)
    for samples in (new, unlabeled):
        expected = similarities(support, labels.tolist(), unlabeled, samples, unknown)
        found = rule.scores(torch.from_numpy(samples)[None])[0, :, 0]
        np.testing.assert_allclose(found, expected.reshape(-1), atol=1e-9)


@pytest.mark.parametrize("n_unlabeled", [0, 1, 2])
def test_two_unlabeled_samples_say_how_similar_samples_are_to_classes_of_one_example(n_unlabeled):
    support, labels, unlabeled, _, _ = small_task(n_unlabeled)
    parts = [torch.from_numpy(part) for part in (support[::2], labels[::2], unlabeled)]
    rule, mean, deviation = fit_similarity(*parts)
    if n_unlabeled < 2:
        assert (mean, deviation) == (0.0, 1.0)
    else:
        assert mean == pytest.approx(float(rule.scores(parts[2][None]).mean()), abs=1e-6)


def areas(seed, distractors=4, **given):
    """Areas under the curve of the score, and of the plain cosine to the class mean."""
    support, labels, unlabeled, truth = task(spread=2.0, distractors=distractors, seed=seed)
    unlabeled, support = unlabeled + 2, support + 2  # a mean that all samples share
    score = classify(support, labels, unlabeled, **given).ood
    unit = unlabeled / np.linalg.norm(unlabeled, axis=1, keepdims=True)
    means = np.stack([support[labels == n].mean(axis=0) for n in range(6)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return roc_auc_score(truth >= 6, score), roc_auc_score(truth >= 6, -(unit @ means.T).max(1))


def test_near_distractors_are_found_better_than_by_the_plain_cosine():
    found, plain = np.mean([areas(seed) for seed in range(4)], axis=0)
    assert found > plain + 0.03


def test_neighbors_help_to_find_distractors(monkeypatch):
    default = np.mean([areas(seed)[0] for seed in range(4)])
    monkeypatch.setattr(ood, "OWN_WEIGHT", 1.0)
    assert default > np.mean([areas(seed)[0] for seed in range(4)]) + 0.01


def test_far_samples_are_found_though_they_are_not_among_the_unlabeled_ones():
    support, labels, unlabeled, _ = map(torch.from_numpy, task(spread=2.0))
    support, unlabeled = support + 3, unlabeled + 3
    rule, _, _ = fit_similarity(support, labels, unlabeled)
    far = torch.randn(50, 32, generator=torch.Generator().manual_seed(0)) - 1
    known, strange = (rule.scores(x[None])[0, :, 0] for x in (unlabeled, far))
    assert strange.max() < known.min()


def test_samples_that_are_known_to_be_of_no_class_sharpen_the_score():
    gains = []
    for seed in range(4):
        support, labels, unlabeled, truth = task(spread=2.0, distractors=3, seed=seed)
        taught = np.concatenate([unlabeled[truth == way][:3] for way in (6, 7, 8)])
        rest = ~(unlabeled[:, None] == taught).all(axis=2).any(axis=1)
        task_of_rest = support, labels, unlabeled[rest]
        scores = [classify(*task_of_rest, unknown=u).ood[: rest.sum()] for u in (None, taught)]
        before, after = (roc_auc_score(truth[rest] >= 6, one) for one in scores)
        gains.append(after - before)
    assert np.mean(gains) > 0.01


@pytest.mark.parametrize("shots", [1, 2, 5])
@pytest.mark.parametrize("distractors", [0, 3])
def test_few_samples_of_the_classes_are_set_aside_by_the_default_threshold(shots, distractors):
    shares = []
    for seed in range(4):
        support, labels, unlabeled, truth = task(
            shots=shots, spread=1.6, distractors=distractors, seed=seed
        )
        result = classify(support, labels, unlabeled)
        shares.append((result.ood[result.best == truth] > 0.92).mean())
    assert np.mean(shares) < 0.05
