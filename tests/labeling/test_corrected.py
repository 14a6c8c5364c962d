"""Corrections do not make the labels of the other pictures worse."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale

from protorect.uncertainty.classify import classify

SEEDS = 8


def digits():
    found = load_digits()
    return found.data.astype(np.float32), found.target


def wine():
    found = load_wine()
    return scale(found.data).astype(np.float32), found.target


def gain(features, labels, seed, corrections):
    """Percentage points that corrections of the closest labels gain on all others."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))[:300]
    features, labels = features[order], labels[order].astype(np.int64)
    support = np.concatenate([np.flatnonzero(labels == c)[:2] for c in np.unique(labels)])
    rest = np.setdiff1d(np.arange(len(labels)), support)
    before = classify(features[support], labels[support], features[rest])
    closest = np.argsort(before.probability - before.second_probability)[:corrections]
    others = np.setdiff1d(np.arange(len(rest)), closest)
    known = np.concatenate([support, rest[closest]])
    after = classify(features[known], labels[known], features[rest[others]])
    true = labels[rest[others]]
    return 100 * float(np.mean(after.best == true) - np.mean(before.best[others] == true))


@pytest.mark.parametrize("data", [digits, wine])
def test_the_rest_is_not_worse_beyond_the_interval(data):
    gains = np.array([gain(*data(), seed, 10) for seed in range(SEEDS)])
    interval = 1.96 * gains.std(ddof=1) / SEEDS**0.5
    assert gains.mean() + interval >= 0, gains
