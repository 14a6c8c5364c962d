"""A packed data set of noise and untrained weights."""

import pytest

from helpers.packed import pack_noise, save_weights


@pytest.fixture(scope="session")
def noise(tmp_path_factory):
    return pack_noise(tmp_path_factory.mktemp("noise") / "packed", 100)


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    return save_weights(tmp_path_factory.mktemp("weights") / "w.safetensors")


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of eight pictures, so that 100 pictures are 13 blocks."""
    monkeypatch.setattr("protorect.embedding.extract.ROWS_PER_BLOCK", 8)
    monkeypatch.setattr("protorect.embedding.extract.PICTURES_PER_BLOCK", 8)
