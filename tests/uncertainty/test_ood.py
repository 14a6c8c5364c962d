"""The out-of-distribution score takes the neighbors of a sample into account."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from helpers.tasks import task
from protorect.uncertainty import calibration
from protorect.uncertainty.classify import classify
from protorect.uncertainty.ood import NEIGHBORS, Scored, knn_similarity
from reference.knn_similarity import slow_knn_similarity


def scored(n, ways=4, dim=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((n, dim), (n, ways), (n, ways))
    return Scored(*(torch.randn(shape, generator=generator).double() for shape in shapes))


def as_list(samples):
    return list(zip(*(column.tolist() for column in samples), strict=True))


@pytest.mark.parametrize("others", [0, 1, 9, 120])
def test_knn_similarity_equals_the_slow_reference(others):
    samples, unlabeled = scored(30), scored(others, seed=1)
    expected = slow_knn_similarity(as_list(samples), as_list(unlabeled), NEIGHBORS)
    np.testing.assert_allclose(knn_similarity(samples, unlabeled), expected, rtol=1e-9)


def test_a_sample_is_not_its_own_neighbor():
    unlabeled = scored(80)
    expected = slow_knn_similarity(as_list(unlabeled), as_list(unlabeled), NEIGHBORS)
    np.testing.assert_allclose(knn_similarity(unlabeled, unlabeled), expected, rtol=1e-9)
    alone = scored(1)
    assert knn_similarity(alone, alone)[0] == alone.cosines[0, alone.scores[0].argmax()]


def test_neighbors_help_to_find_distractors(monkeypatch):
    areas = {}
    default = calibration.OWN_WEIGHT
    for own_weight in (1.0, default):
        monkeypatch.setattr(calibration, "OWN_WEIGHT", own_weight)
        areas[own_weight] = np.mean([area_under_curve(seed) for seed in range(4)])
    assert areas[default] > areas[1.0] + 0.01


def area_under_curve(seed):
    support, labels, unlabeled, truth = task(ways=6, spread=2.0, distractors=2, seed=seed)
    return roc_auc_score(truth >= 6, classify(support, labels, unlabeled).ood)
