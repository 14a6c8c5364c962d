"""Data that many tests use."""

import numpy as np
import pytest


def clusters(classes=12, each=40, dim=24, spread=1.0, seed=0, dtype=np.float32):
    """Gaussian features around one centre a class, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    centres = rng.normal(size=(classes, dim))
    features = centres[labels] + spread * rng.normal(size=(len(labels), dim))
    return features.astype(dtype), labels


@pytest.fixture
def feature_set():
    return clusters()


@pytest.fixture
def feature_file(tmp_path, feature_set):
    path = tmp_path / "features.npz"
    np.savez(path, features=feature_set[0], labels=feature_set[1])
    return path
