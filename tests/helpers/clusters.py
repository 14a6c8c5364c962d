"""Gaussian features, one cluster per class."""

import numpy as np


def clusters(classes=12, each=40, dim=24, spread=1.0, seed=0, dtype=np.float32):
    """Gaussian features around one center per class, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    centers = rng.normal(size=(classes, dim))
    features = centers[labels] + spread * rng.normal(size=(len(labels), dim))
    return features.astype(dtype), labels
