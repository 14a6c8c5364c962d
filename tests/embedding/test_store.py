import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from helpers.damage import damaged_files, damages, read_or_refused
from protorect import DataError, load_features
from protorect.cli import main
from protorect.embedding.store import create_store
from protorect.evaluation.features import FeatureTable

PROVENANCE = {"weights": "abc"}


@pytest.fixture
def store(tmp_path, feature_set):
    features, labels = feature_set
    folder = tmp_path / "store"
    names = [f"class {label:02}" for label in range(labels.max() + 1)]
    create_store(folder, features.shape[1], labels, names, PROVENANCE)[:] = features
    return folder


def test_features_are_mapped_and_labels_named(store, feature_set):
    features, labels = load_features(store)
    assert isinstance(features, np.memmap)
    np.testing.assert_array_equal(features, feature_set[0])
    assert labels.tolist() == [f"class {label:02}" for label in feature_set[1]]
    table = FeatureTable.of(features, labels)
    assert np.shares_memory(table.rows.numpy(), features)  # nothing was read into memory


def test_a_store_is_evaluated_like_a_file(store, feature_file, tmp_path, capsys):
    tables = []
    for features in (store, feature_file):
        words = ["--method", "cspn", "--episodes", "20", "--json", str(tmp_path / "r.json")]
        assert main(["evaluate", str(features), *words]) == 0
        document = json.loads((tmp_path / "r.json").read_text())
        assert document["settings"].get("made_by") == (PROVENANCE if features is store else None)
        tables.append(document["results"])
        assert capsys.readouterr().out.startswith(features.name)
    for record in (one for table in tables for one in table):
        record.pop("seconds")
    assert tables[0] == tables[1]


@pytest.mark.parametrize("kind", [int, str])
def test_a_store_may_have_groups(store, feature_set, kind):
    assert FeatureTable.of(store).groups is None
    groups = [kind(row // 4) for row in range(len(feature_set[1]))]
    np.save(store / "groups.npy", groups)
    assert FeatureTable.of(store).groups.tolist() == groups
    np.save(store / "groups.npy", groups[1:])
    with pytest.raises(
        DataError, match=r"groups.npy is damaged: it holds .* \(479,\), the manifest says \(480,\)"
    ):
        FeatureTable.of(store)
    (store / "groups.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"groups.npy is damaged"):
        FeatureTable.of(store)


def claim(**changes):
    def change(folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps(manifest | changes))

    return change


def replace(name, data):
    return lambda folder: (folder / name).write_bytes(data)


def pickled(folder):
    np.save(folder / "features.npy", np.array([{}]), allow_pickle=True)


def longer(folder):
    with (folder / "features.npy").open("ab") as file:
        file.write(b"more")


def shorter(folder):
    data = (folder / "features.npy").read_bytes()
    (folder / "features.npy").write_bytes(data[:-1])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: (folder / "manifest.json").unlink(),
            "is not a feature store: it has no manifest.json",
        ),
        (replace("manifest.json", b"{"), "manifest.json is damaged: it is not JSON"),
        (replace("manifest.json", b"[" * 100_000), "manifest.json is damaged: it is not JSON"),
        (replace("manifest.json", b"\xff"), "manifest.json is damaged: it is not JSON"),
        (claim(format="other"), "is not the manifest of a feature store"),
        (claim(version=9), "of format version 9; this protorect reads version 1"),
        (claim(shape=[10**12, 10**6]), "features.npy is damaged: it holds float32"),
        (claim(shape="?"), "manifest.json is damaged: shape is '\\?'; it must be a list of 2"),
        (claim(shape=[1]), "shape is \\[1\\]; it must be a list of 2"),
        (claim(shape=[1, -1]), "shape\\[1\\] is -1; it must be a whole number in 0 .. "),
        (claim(shape=[1, True]), "shape\\[1\\] is True; it must be a whole number in 0 .. "),
        (claim(shape=[1, 2.0]), "shape\\[1\\] is 2.0; it must be a whole number in 0 .. "),
        (
            claim(dtype="object"),
            "dtype is 'object'; it must be 'float16' or 'float32' or 'float64'",
        ),
        (claim(made_by=None), "made_by is None; it must be an object"),
        (lambda folder: (folder / "labels.npy").unlink(), "labels.npy is damaged: the file is mis"),
        (
            replace("class_names.json", b"[1]"),
            "class_names.json is damaged: .0. is 1; it must be t",
        ),
        (replace("class_names.json", b'["\\ud800"]'), "class_names.json is damaged: .0. is"),
        (replace("class_names.json", b'["a"]'), "1 class_names for labels 0 .. 11"),
        (pickled, "features.npy is damaged"),
        (longer, "it is longer than its array"),
        (shorter, "features.npy is damaged"),
    ],
)
def test_a_damaged_store_is_refused(store, damage, message):
    damage(store)
    with pytest.raises(DataError, match=message):
        load_features(store)


def test_a_manifest_that_is_too_long_is_not_read(store, monkeypatch):
    monkeypatch.setattr("protorect._utils.files.read_bytes.__defaults__", (10,))
    with pytest.raises(DataError, match="cannot read .*manifest.json: [0-9]+ bytes are too many"):
        load_features(store)


@damaged_files
@given(data=st.data())
def test_a_damaged_store_is_read_or_refused(store, tmp_path, data):
    name = data.draw(st.sampled_from(["manifest.json", "class_names.json", "labels.npy"]))
    for file in store.iterdir():  # a copy: each example damages one of its files
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = data.draw(damages((store / name).read_bytes()))
    read_or_refused(
        tmp_path / name, content, lambda _: load_features(tmp_path), lambda loaded: len(loaded) == 2
    )
