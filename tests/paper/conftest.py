"""A folder of small feature files with manifests as `protorect extract` writes them."""

import pytest

from helpers.feature_files import write_features
from protorect.paper.feature_sets import FeatureFolder, FeatureSet
from protorect.paper.measure import Job, Setting


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """Omniglot and CUB by conv64, and two data sets of Meta-Dataset, both splits of each."""
    folder = tmp_path_factory.mktemp("features")
    sources = [("omniglot", "conv64"), ("cub", "conv64")]
    sources += [(f"meta-{name}", "efficientnet-lite0") for name in ("omniglot", "cu-birds")]
    for number, source in enumerate(sources):
        write_features(folder, *source, "val", seed=2 * number)
        write_features(folder, *source, "test", seed=2 * number + 1)
    return folder


@pytest.fixture(scope="session")
def job(features):
    """CSPN and BD-CSPN on 20 episodes of Omniglot."""
    folder, omniglot = FeatureFolder(features), FeatureSet("omniglot", "conv64")
    settings = [Setting(omniglot, episodes=20)]
    return Job(*folder.load(omniglot), folder, ("cspn", "bd-cspn"), settings)
