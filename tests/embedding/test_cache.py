"""The feature cache: features are computed once, and no state of the cache is an error."""

import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from protorect import LabelingSession
from protorect.cli import main
from protorect.embedding.cache import _BYTES_IN_USE, FILE, FeatureCache, user_cache
from protorect.embedding.pipeline import embed_pictures
from protorect.embedding.sources import load_embedder
from protorect.errors import DataError
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
    assert first.digests == second.digests


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


def test_the_digest_of_a_file_changed_a_moment_ago_is_not_remembered(colors, tmp_path):
    with FeatureCache(tmp_path / "cache") as cache:
        file = str(colors.pictures / "red" / "0.png")
        cache.put("network", [], [(file, b"digest")])
        assert cache.known_digest(file) is None
        os.utime(file, (time.time() - 100,) * 2)
        cache.put("network", [], [(file, b"digest")])
        assert cache.known_digest(file) == b"digest"


def test_an_empty_file_is_filled(colors, counting, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / FILE).touch()
    _, problem = embed(colors, counting, tmp_path / "cache")
    assert problem == ""
    embed(colors, counting, tmp_path / "cache")
    assert counting.count == 24


@pytest.mark.parametrize("kind", ["database", "text", "of the same version"])
def test_a_file_of_somebody_else_is_refused_by_name_and_kept(colors, tmp_path, capsys, kind):
    file = tmp_path / "cache" / FILE
    file.parent.mkdir()
    if kind == "text":
        file.write_text("my notes")
    else:
        with sqlite3.connect(file) as database:
            database.execute("CREATE TABLE features (mine)")
            database.execute("PRAGMA user_version = 1" if kind != "database" else "SELECT 1")
        database.close()
    before = file.read_bytes()
    sort = ["sort", str(colors.pictures), "--examples", str(colors.examples), "--cache"]
    sort += [str(file.parent), "--network", colors.weights, "--out", str(colors.out)]
    assert main(sort) == 2
    assert f"{file} is not a cache of protorect; give another folder" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert [one.name for one in file.parent.iterdir()] == [FILE]
    assert not colors.out.exists()


def change(file, *statements):
    database = sqlite3.connect(file)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE files",
        "CREATE TABLE mine (text)",
        "CREATE TRIGGER t AFTER INSERT ON files BEGIN DELETE FROM features; END",
        "ALTER TABLE features RENAME COLUMN vector TO other",
    ],
)
def test_a_changed_cache_is_set_aside(colors, counting, tmp_path, statement):
    file = tmp_path / "cache" / FILE
    embed(colors, counting, file.parent)
    change(file, "PRAGMA journal_mode = DELETE", statement)
    before = file.read_bytes()
    _, problem = embed(colors, counting, file.parent)
    assert problem == ""
    assert counting.count == 48
    assert (file.parent / f"{FILE}.damaged-1").read_bytes() == before
    embed(colors, counting, file.parent)
    assert counting.count == 48


def test_a_damaged_page_is_noticed_and_the_cache_set_aside(colors, counting, tmp_path):
    file = tmp_path / "cache" / FILE
    embed(colors, counting, file.parent)
    change(file, "PRAGMA journal_mode = DELETE")
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    embed(colors, counting, file.parent)
    assert counting.count == 48
    embed(colors, counting, file.parent)
    embed(colors, counting, file.parent)
    assert counting.count <= 72  # by now there is a new one
    assert (file.parent / f"{FILE}.damaged-1").exists()


@pytest.mark.parametrize("version", [1, 99])
def test_a_cache_of_another_version_is_replaced(colors, counting, tmp_path, version):
    """Two installed versions that are used in turn leave no files behind."""
    file = tmp_path / "cache" / FILE
    for count in (24, 48):
        embed(colors, counting, file.parent)
        assert counting.count == count
        change(file, f"PRAGMA user_version = {version}", "CREATE TABLE new (text)")
    _, problem = embed(colors, counting, file.parent)
    assert problem == ""
    embed(colors, counting, file.parent)
    assert counting.count == 72
    assert os.listdir(file.parent) == [FILE]


def test_processes_that_replace_a_cache_at_the_same_time_share_the_new_one(tmp_path):
    file = tmp_path / "cache" / FILE
    for _ in range(5):
        with FeatureCache(file.parent):
            pass
        change(file, "PRAGMA user_version = 1")
        start = threading.Barrier(4)

        def use(number, start=start):
            start.wait()
            with FeatureCache(file.parent) as cache:
                cache.put_bytes("maker", bytes([number]), b"made")
            return cache.problem

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(use, range(4))) == [""] * 4
        with FeatureCache(file.parent) as cache:
            found = [cache.get_bytes("maker", bytes([number])) for number in range(4)]
        assert found == [b"made"] * 4


def test_a_cache_of_another_version_that_is_in_use_is_left_alone(colors, counting, tmp_path):
    file = tmp_path / "cache" / FILE
    with FeatureCache(file.parent) as other:
        change(file, "PRAGMA user_version = 99")
        _, problem = embed(colors, counting, file.parent)
        assert "locked" in problem
        other.put_bytes("maker", b"digest", b"made")
        assert other.get_bytes("maker", b"digest") == b"made"
    assert embed(colors, counting, file.parent)[1] == ""
    assert os.listdir(file.parent) == [FILE]


def test_a_cache_of_the_first_format_is_replaced(colors, counting, tmp_path):
    file = tmp_path / "cache" / FILE
    file.parent.mkdir()
    change(
        file,
        "CREATE TABLE features (network, content, vector, used)",
        "CREATE TABLE files (place, size, changed, content)",
        "PRAGMA user_version = 1",
    )
    assert embed(colors, counting, file.parent)[1] == ""
    assert os.listdir(file.parent) == [FILE]


def test_the_users_own_cache_is_never_refused(colors, counting, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    user_cache().mkdir()
    (user_cache() / FILE).write_bytes(b"no database at all")
    assert embed(colors, counting, user_cache())[1] == ""
    assert (user_cache() / f"{FILE}.damaged-1").read_bytes() == b"no database at all"


@pytest.mark.parametrize(
    "change_of_rows",
    [
        "vector = x'010203'",
        "vector = zeroblob(length(vector))",
        "vector = (SELECT vector FROM features ORDER BY content LIMIT 1)",
        "vector = 'text'",
        "vector = NULL",
    ],
)
def test_a_poisoned_row_is_computed_again(colors, counting, tmp_path, change_of_rows):
    first, _ = embed(colors, counting, tmp_path / "cache")
    change(tmp_path / "cache" / FILE, f"UPDATE features SET {change_of_rows}")
    second, problem = embed(colors, counting, tmp_path / "cache")
    assert counting.count >= 47  # one row may be as it was
    np.testing.assert_array_equal(first.features, second.features)
    assert problem == ""
    before = counting.count
    embed(colors, counting, tmp_path / "cache")
    assert counting.count == before


def test_a_poisoned_digest_of_a_file_is_not_used(tmp_path):
    (tmp_path / "1.png").write_bytes(b"1")
    os.utime(tmp_path / "1.png", (1e9, 1e9))
    file = str(tmp_path / "1.png")
    with FeatureCache(tmp_path / "cache") as cache:
        cache.put("network", [], [(file, b"digest")])
        assert cache.known_digest(file) == b"digest"
    change(tmp_path / "cache" / FILE, "UPDATE files SET content = x'00'")
    with FeatureCache(tmp_path / "cache") as cache:
        assert cache.known_digest(file) is None


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


def test_thumbnails_alone_are_bounded_too(tmp_path):
    with FeatureCache(tmp_path, max_bytes=40 * 16384) as cache:
        for number in range(100):
            cache.put_bytes("maker", number.to_bytes(32, "big"), bytes(16384))
        assert cache._run(_BYTES_IN_USE, [()])[0][0] <= 40 * 16384
        assert cache.get_bytes("maker", (99).to_bytes(32, "big")) == bytes(16384)


def test_what_was_used_last_is_kept(tmp_path):
    names = [number.to_bytes(32, "big") for number in range(40)]
    with FeatureCache(tmp_path, max_bytes=40 * 16384) as cache:
        for name in names[:20]:
            cache.put_bytes("maker", name, bytes(16384))
        change(tmp_path / FILE, "UPDATE features SET used = used - 3")
        assert cache.get_bytes("maker", names[0])  # the first row, used again
        assert cache.get_bytes("other maker", names[1]) is None
        for name in names[20:]:
            cache.put_bytes("maker", name, bytes(16384))
        kept = [name for name in names if cache.get_bytes("maker", name)]
    assert names[0] in kept
    assert names[1] not in kept


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
        cache.put("network", [], [("1.png", b"digest of a")])
        assert cache.known_digest("1.png") == b"digest of a"
        monkeypatch.chdir(tmp_path / "b")
        assert cache.known_digest("1.png") is None


@pytest.mark.parametrize("command", ["sort", "label", "extract"])
def test_a_cache_that_is_a_file_is_refused_before_anything_is_written(
    colors, tmp_path, capsys, command
):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    new = tmp_path / "new"
    given = {
        "sort": [colors.pictures, "--examples", colors.examples, "--network", colors.weights],
        "extract": [colors.weights, colors.pictures],
    }
    if command == "label":  # its cache is given in Python only
        with pytest.raises(DataError, match="is not a folder"):
            LabelingSession.open(new, colors.pictures, source=colors.weights, cache=file)
    else:
        arguments = [*given[command], "--out", new, "--cache", file]
        assert main([command, *map(str, arguments)]) == 2
        assert "notes.txt is not a folder" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert not new.exists()
