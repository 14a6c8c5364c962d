"""Small feature files with the manifest of real ones."""

import json

import numpy as np

from helpers.clusters import clusters
from protorect._utils.arrays import save_arrays


def write_features(folder, dataset, backbone, split, *, seed=0, classes=12, manifest=None):
    """Write one feature file; `manifest` replaces entries of its manifest."""
    features, labels = clusters(classes=classes, each=20, dim=16, spread=2.0, seed=seed)
    entries = {"data": dataset, "backbone": backbone, "split": split, "weights": "w" * 64}
    save_arrays(
        folder / f"{dataset}-{backbone}-{split}.npz",
        features=features,
        labels=labels,
        manifest=np.array(json.dumps(entries | (manifest or {}))),
    )
