"""The photographs of the demonstration, and how they are sorted."""

import hashlib
from importlib.resources import files

import pytest

from protorect.demo.photographs import sort_photographs, write_photographs
from protorect.errors import DataError
from protorect.sorting.sort import no_progress

DIGESTS = {  # as `python -m benchmarks.demo_data` made them
    "omniglot-test.xz": "90afd1f939a66c1a71d4996fd663c3e70c561339b41a276e9da910aaf3c4a6da",
    "groceries.zip": "5ca29b3a920286ff7cd3101a39749b4fa2716316aab562169b7c74339b31fd3b",
}


def data():
    return files("protorect.demo").joinpath("data")


@pytest.mark.parametrize("name", DIGESTS)
def test_the_data_in_the_package_are_unchanged(name):
    assert hashlib.sha256(data().joinpath(name).read_bytes()).hexdigest() == DIGESTS[name]


@pytest.mark.parametrize(
    ("name", "holder"), [("omniglot", "2015 Brenden Lake"), ("groceries", "2019 Marcus Klasson")]
)
def test_the_licences_stand_beside_the_data(name, holder):
    text = data().joinpath(f"{name}.LICENSE").read_text("utf-8")
    assert f"Copyright (c) {holder}" in text
    assert "Permission is hereby granted" in text


def test_a_hundred_photographs_are_sorted_from_three_examples_per_class(photographs):
    root = photographs.folder.root.parent
    classes = sorted(path.name for path in (root / "examples").iterdir())
    assert len(classes) == 10
    assert all(len(list((root / "examples" / name).iterdir())) == 3 for name in classes)
    assert len(list((root / "pictures").rglob("*.jpg"))) == 100
    assert photographs.problems == []
    assert photographs.evaluation.pictures == 100
    assert photographs.evaluation.accuracy > 75
    assert (root / "sorted" / "index.html").exists()
    assert not any(path.is_symlink() for path in (root / "sorted").rglob("*.jpg"))


def test_the_demonstration_can_be_repeated_beside_other_files(photographs):
    root = photographs.folder.root.parent
    (root / "notes.txt").write_text("mine")
    missing = next((root / "pictures").rglob("*.jpg"))
    missing.unlink()
    again = sort_photographs(root, no_progress)
    assert again.evaluation.pictures == 100
    assert missing.exists()
    assert (root / "notes.txt").read_text() == "mine"


def test_other_files_of_the_same_name_are_kept(tmp_path):
    write_photographs(tmp_path / "demo")
    first, *others = sorted((tmp_path / "demo" / "pictures").rglob("*.jpg"))
    first.write_bytes(b"mine")
    for path in others:
        path.unlink()
    with pytest.raises(DataError, match=r"is not the demonstration's; remove .*demo or give"):
        write_photographs(tmp_path / "demo")
    assert first.read_bytes() == b"mine"
    assert not any(path.exists() for path in others)
