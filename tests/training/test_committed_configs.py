"""Every configuration that is kept can be read."""

from pathlib import Path

import pytest

from protorect.backbones.registry import BACKBONES
from protorect.training import read_config

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_kept_configuration_is_valid(path):
    config = read_config(path)
    assert config.backbone in BACKBONES
    assert path.stem.endswith(config.backbone)


def test_there_are_some():
    assert CONFIGS
