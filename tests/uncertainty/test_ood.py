"""A picture is judged by its neighbours, too."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from helpers.tasks import task
from protorect.uncertainty import calibration
from protorect.uncertainty.ood import NEIGHBOURS, Looked, company
from protorect.uncertainty.predict import classify
from reference.company import slow_company


def looked(n, ways=4, dim=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((n, dim), (n, ways), (n, ways))
    return Looked(*(torch.randn(shape, generator=generator).double() for shape in shapes))


def listed(pictures):
    return list(zip(*(column.tolist() for column in pictures), strict=True))


@pytest.mark.parametrize("others", [0, 1, 9, 120])
def test_the_nearest_of_the_same_label_are_asked(others):
    pictures, pile = looked(30), looked(others, seed=1)
    expected = slow_company(listed(pictures), listed(pile), NEIGHBOURS)
    np.testing.assert_allclose(company(pictures, pile), expected, rtol=1e-9)


def test_nobody_is_his_own_neighbour():
    pile = looked(80)
    expected = slow_company(listed(pile), listed(pile), NEIGHBOURS)
    np.testing.assert_allclose(company(pile, pile), expected, rtol=1e-9)
    alone = looked(1)
    assert company(alone, alone)[0] == alone.cosines[0, alone.scores[0].argmax()]


def test_neighbours_tell_foreign_classes_from_ours(monkeypatch):
    found = {}
    for own in (1.0, calibration.OWN_SHARE):
        monkeypatch.setattr(calibration, "OWN_SHARE", own)
        areas = []
        for seed in range(4):
            support, labels, pile, truth = task(ways=6, spread=2.0, foreign=2, seed=seed)
            familiarity = classify(support, labels, pile).familiarity
            areas.append(roc_auc_score(truth < 6, familiarity))
        found[own] = np.mean(areas)
    assert found[calibration.OWN_SHARE] > found[1.0] + 0.01
