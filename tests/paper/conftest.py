"""Feature files as `protorect extract` writes them, and a job that measures on some of them."""

import pytest

from helpers.paper import write_feature_sets
from protorect.paper.feature_sets import FeatureFolder, FeatureSet
from protorect.paper.measure import Job, Setting


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """Omniglot and CUB by conv64, and two data sets of Meta-Dataset, both splits of each."""
    return write_feature_sets(tmp_path_factory.mktemp("features"))


@pytest.fixture(scope="session")
def job(features):
    """CSPN and BD-CSPN on 20 episodes of Omniglot."""
    folder, omniglot = FeatureFolder(features), FeatureSet("omniglot", "conv64")
    settings = [Setting(omniglot, episodes=20)]
    return Job(*folder.load(omniglot), folder, ("cspn", "bd-cspn"), settings)
