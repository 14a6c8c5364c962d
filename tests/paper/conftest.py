"""A folder of small feature files that look like those of real runs."""

import json

import numpy as np
import pytest

from conftest import clusters
from protorect.arrays import save_arrays


def write_features(folder, dataset, backbone, split, *, seed=0, classes=12, says=None):
    """One feature file with its manifest; `says` replaces what the manifest says."""
    features, labels = clusters(classes=classes, each=20, dim=16, spread=2.0, seed=seed)
    manifest = {"data": dataset, "backbone": backbone, "split": split, "weights": "w" * 64}
    save_arrays(
        folder / f"{dataset}-{backbone}-{split}.npz",
        features=features,
        labels=labels,
        manifest=np.array(json.dumps(manifest | (says or {}))),
    )


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """Omniglot and CUB by conv64, and two sources of Meta-Dataset, both splits of each."""
    folder = tmp_path_factory.mktemp("features")
    sources = [("omniglot", "conv64"), ("cub", "conv64")]
    sources += [(f"meta-{name}", "efficientnet-lite0") for name in ("omniglot", "cu-birds")]
    for number, source in enumerate(sources):
        write_features(folder, *source, "val", seed=2 * number)
        write_features(folder, *source, "test", seed=2 * number + 1)
    return folder
