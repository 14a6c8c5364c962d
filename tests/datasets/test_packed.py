"""Opening packed folders, intact and damaged."""

import json
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from helpers.damage import damaged_files, damages, read_or_refused
from helpers.pictures import class_folders
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import prepare
from protorect.errors import DataError, OptionError


@pytest.fixture
def path(tmp_path):
    root = class_folders(tmp_path / "root", ["ant", "bee", "cat"])
    prepare("folder", root, tmp_path / "packed", size=12)
    return tmp_path / "packed"


def change(path, **values):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest.update(values)
    (path / "manifest.json").write_text(json.dumps(manifest))


def refused(path, match):
    with pytest.raises(DataError, match=match) as caught:
        PackedDataset.open(path)
    assert "\n" not in str(caught.value)


def test_contents(path):
    packed = PackedDataset.open(path)
    assert (packed.name, packed.size, packed.channels) == ("folder", 12, 3)
    assert (packed.flip, packed.crop_padding, packed.splits) == (True, 1, ("train", "val", "test"))
    assert len(packed.mean) == len(packed.std) == 3
    train = packed.split("train")
    assert isinstance(train.images, np.memmap)
    assert (train.images.dtype, train.images.shape) == (np.uint8, (3, 12, 12, 3))
    assert not train.images.flags.writeable
    np.testing.assert_array_equal(train.labels, [0, 0, 0])
    assert train.labels.dtype == np.int64
    assert len(train.digest) == 64
    assert train.digest != packed.split("val").digest


def test_the_digest_depends_on_the_pictures(tmp_path, path):
    root = tmp_path / "root"
    before = {s: PackedDataset.open(path).split(s) for s in ("train", "val", "test")}
    (root / "ant" / "1.png").unlink()
    after = prepare("folder", root, tmp_path / "again", size=12)
    changed = {name for name, split in before.items() if split.digest != after.split(name).digest}
    assert changed == {name for name, split in before.items() if "ant" in split.class_names}


def test_an_unknown_split(path):
    with pytest.raises(OptionError, match="Did you mean 'train'"):
        PackedDataset.open(path).split("training")


def test_a_folder_that_is_not_packed(path, tmp_path):
    refused(tmp_path, r"has no manifest\.json")
    refused(tmp_path / "absent", r"has no manifest\.json")
    refused(path / "train.npy", r"has no manifest\.json")


def test_another_format(path):
    change(path, format="other")
    refused(path, "is not the manifest of a packed data set")


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version(path, version):
    change(path, version=version)
    refused(path, f"format version {version}; this protorect reads version 1")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000], ids=["empty", "brace", "list", "deep"]
)
def test_a_file_that_is_not_a_manifest(path, text):
    (path / "manifest.json").write_text(text)
    refused(path, "is not JSON|is not the manifest of a packed")


@pytest.mark.parametrize("key", ["dataset", "size", "channels", "mean", "std", "flip", "splits"])
def test_a_missing_manifest_entry(path, key):
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest[key]
    (path / "manifest.json").write_text(json.dumps(manifest))
    refused(path, rf"manifest\.json is damaged: {key} is missing; it must be")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("size", 0, "size is 0; it must be a whole number in 1 .. 1024"),
        ("size", 10**400, "size is 1000.*; it must be a whole number in 1 .. 1024"),
        ("size", True, "size is True"),
        ("size", 12.0, "size is 12.0"),
        ("channels", 2, "channels is 2; it must be 1 or 3"),
        ("mean", [0.5], "mean and std are not 3 numbers each"),
        ("mean", [0.5, 0.5, float("nan")], r"mean\[2\] is nan; it must be a finite number"),
        ("std", 0.5, "std is 0.5; it must be a list"),
        ("crop_padding", -1, "crop_padding is -1"),
        ("splits", {"train": {}}, r"splits\.train\.images is missing"),
        ("unreadable", [{"path": 1}], r"unreadable\[0\]\.path is 1; it must be text"),
    ],
)
def test_a_manifest_entry_of_another_type(path, key, value, message):
    change(path, **{key: value})
    refused(path, message)


@pytest.mark.parametrize("images", [-1, True, 3.0, "3", 2**60])
def test_a_number_of_pictures_that_cannot_be(path, images):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["splits"]["train"]["images"] = images
    change(path, splits=manifest["splits"])
    refused(path, r"splits\.train\.images is .*; it must be a whole number")


def test_a_size_that_does_not_fit_the_arrays(path):
    change(path, size=13)
    refused(path, r"holds uint8 \(3, 12, 12, 3\), the manifest says uint8 \(3, 13, 13, 3\)")


def test_an_unknown_split_in_the_manifest(path):
    change(path, splits={"../train": {}})
    refused(path, r"splits\.\.\./train\.images is missing")
    record = json.loads((path / "manifest.json").read_text())["splits"]["../train"]
    change(path, splits={"../train": record | {"images": 3, "class_names": [], "digest": ""}})
    refused(path, "it has the split '../train'")


def test_a_missing_array(path):
    (path / "val.npy").unlink()
    refused(path, r"val\.npy is damaged: the file is missing")


@pytest.mark.parametrize("length", [0, 50, 200, 500])
def test_a_truncated_array(path, length):
    os.truncate(path / "val.npy", length)
    refused(path, r"val\.npy is damaged")


def test_an_array_with_trailing_bytes(path):
    with (path / "val.npy").open("ab") as file:
        file.write(b"x")
    refused(path, "longer than its array")


def test_pickled_labels_are_an_error(path):
    (path / "train-labels.npy").write_bytes(pickle.dumps([0, 0, 0]))
    refused(path, r"train-labels\.npy is damaged")
    np.save(path / "train-labels.npy", np.array([0, 0, 0], object), allow_pickle=True)
    refused(path, r"train-labels\.npy is damaged")


@pytest.mark.parametrize("labels", [[0, 0, 1], [-1, 0, 0], [1, 1, 1]])
def test_labels_that_do_not_fit_the_classes(path, labels):
    np.save(path / "train-labels.npy", np.array(labels))
    refused(path, "do not fit its classes")


@damaged_files
@given(data=st.data())
def test_a_damaged_manifest_fits_the_arrays_or_is_refused(path, data):
    manifest = path / "manifest.json"
    whole = path / "whole.json"
    if not whole.exists():
        whole.write_bytes(manifest.read_bytes())
    content = data.draw(damages(whole.read_bytes()))

    def fits(packed):
        images = [packed.split(name).images for name in packed.splits]
        return all(one.shape[1:] == (12, 12, 3) for one in images)

    read_or_refused(manifest, content, lambda _: PackedDataset.open(path), fits)
