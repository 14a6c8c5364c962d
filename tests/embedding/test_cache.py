"""The feature cache: features are computed once, and no state of the cache is an error."""

import os
import sqlite3
import time

import numpy as np
import pytest

from protorect.embedding.cache import FILE, FeatureCache, user_cache
from protorect.embedding.pipeline import embed_pictures
from protorect.embedding.sources import load_embedder
from protorect.images.find import find_pictures


class CountingEmbedder:
    """An embedder that counts the pictures it has embedded."""

    def __init__(self, embedder):
        self._embedder, self._batches = embedder, []
        self.digest, self.size, self.channels = embedder.digest, embedder.size, embedder.channels
        self.origin, self.block = embedder.origin, embedder.block

    def __call__(self, pictures):
        self._batches.append(len(pictures))
        return self._embedder(pictures)

    @property
    def count(self):
        return sum(self._batches)


@pytest.fixture
def counting(colors):
    return CountingEmbedder(load_embedder(colors.weights))


def embed(colors, counting, folder):
    with FeatureCache(folder) as cache:
        return embed_pictures(
            find_pictures(colors.pictures).pictures, counting, cache
        ), cache.problem


def test_features_are_not_computed_twice(colors, counting, tmp_path):
    first, _ = embed(colors, counting, tmp_path / "cache")
    assert counting.count == 24
    second, _ = embed(colors, counting, tmp_path / "cache")
    assert counting.count == 24
    np.testing.assert_array_equal(first.features, second.features)
    assert first.contents == second.contents


def test_features_are_found_by_content_not_by_name(colors, counting, tmp_path):
    embed(colors, counting, tmp_path / "cache")
    colors.pictures.rename(colors.root / "elsewhere")
    colors.pictures = colors.root / "elsewhere"
    embed(colors, counting, tmp_path / "cache")
    assert counting.count == 24


def test_a_changed_picture_is_read_again(colors, counting, tmp_path):
    for path in colors.pictures.rglob("*.png"):
        os.utime(path, (time.time() - 100,) * 2)
    first, _ = embed(colors, counting, tmp_path / "cache")
    changed = colors.pictures / "blue" / "0.png"
    changed.write_bytes((colors.pictures / "red" / "0.png").read_bytes())
    second, _ = embed(colors, counting, tmp_path / "cache")
    assert counting.count == 24  # its new content was known from the other file
    assert (first.features[0] != second.features[0]).any()
    np.testing.assert_array_equal(second.features[0], second.features[16])


def test_the_content_of_a_file_changed_a_moment_ago_is_not_remembered(colors, tmp_path):
    with FeatureCache(tmp_path / "cache") as cache:
        file = str(colors.pictures / "red" / "0.png")
        cache.put("network", [], [(file, b"content")])
        assert cache.known_content(file) is None
        os.utime(file, (time.time() - 100,) * 2)
        cache.put("network", [], [(file, b"content")])
        assert cache.known_content(file) == b"content"


@pytest.mark.parametrize("damage", [b"no database at all", b""])
def test_a_damaged_cache_is_replaced(colors, counting, tmp_path, damage):
    embed(colors, counting, tmp_path / "cache")
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(damage)
    embedded, problem = embed(colors, counting, tmp_path / "cache")
    assert len(embedded.features) == 24
    assert problem == ""
    assert counting.count == 48


def test_a_truncated_vector_is_not_used(colors, counting, tmp_path):
    embed(colors, counting, tmp_path / "cache")
    with sqlite3.connect(tmp_path / "cache" / FILE) as database:
        database.execute("UPDATE features SET vector = x'010203'")
    database.close()
    embedded, _ = embed(colors, counting, tmp_path / "cache")
    assert counting.count == 48
    assert len(embedded.features) == 24


def test_work_continues_without_a_writable_cache(colors, counting, tmp_path):
    (tmp_path / "file").write_text("in the way")
    embedded, problem = embed(colors, counting, tmp_path / "file" / "cache")
    assert len(embedded.features) == 24
    assert problem
    embedded, problem = embed(colors, counting, None)
    assert len(embedded.features) == 24
    assert problem == ""


def test_it_is_bounded_and_removes_the_oldest_features(tmp_path):
    row = np.ones(4096, np.float32)
    with FeatureCache(tmp_path, max_bytes=40 * row.nbytes) as cache:
        for number in range(100):
            cache.put("network", [(number.to_bytes(32, "big"), row)], [])
        numbers = [
            number
            for number in range(100)
            if cache.get("network", number.to_bytes(32, "big")) is not None
        ]
    assert 20 <= len(numbers) <= 40
    assert numbers == list(range(100 - len(numbers), 100))


def test_two_connections_at_the_same_time(tmp_path):
    rows = [(number.to_bytes(32, "big"), np.full(3, number, np.float32)) for number in range(2)]
    with FeatureCache(tmp_path) as one, FeatureCache(tmp_path) as two:
        one.put("network", rows[:1], [])
        two.put("network", rows[1:], [])
        assert two.get("network", rows[0][0]).tolist() == [0, 0, 0]
        assert one.get("network", rows[1][0]).tolist() == [1, 1, 1]


def test_the_folder_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert user_cache() == tmp_path / "protorect"


def test_a_relative_path_is_another_file_in_another_folder(tmp_path, monkeypatch):
    """Both files have the same size and the same time of the last change."""
    with FeatureCache(tmp_path / "cache") as cache:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "1.png").write_bytes(name.encode())
            os.utime(tmp_path / name / "1.png", (1e9, 1e9))
        monkeypatch.chdir(tmp_path / "a")
        cache.put("network", [], [("1.png", b"content of a")])
        assert cache.known_content("1.png") == b"content of a"
        monkeypatch.chdir(tmp_path / "b")
        assert cache.known_content("1.png") is None
