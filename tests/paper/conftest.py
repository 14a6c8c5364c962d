"""A folder of small feature files that look like those of real runs."""

import pytest

from helpers.feature_files import write_features


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
