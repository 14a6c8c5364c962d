"""`protorect prepare` through its parser: what it prints, and how it ends on bad input."""

import argparse
import json
import os

import pytest

from helpers.pictures import class_folders
from protorect.cli import prepare
from protorect.datasets.packed import PackedDataset
from protorect.errors import DataError, OptionError


def run(*arguments):
    parser = argparse.ArgumentParser()
    prepare.add_to(parser.add_subparsers(required=True))
    options = parser.parse_args(["prepare", *map(str, arguments)])
    options.run(options)


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return class_folders(tmp_path / "root", ["ant", "bee", "cat"])


def test_it_says_what_was_packed_and_what_was_not(root, capsys):
    for number in range(22):
        (root / "ant" / f"zero{number}.jpg").touch()
    (root / "readme.txt").touch()
    run("folder", root, "--out", "packed", "--size", 8, "--split", "0.34,0.33,0.33", "--seed", 1)
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert [line.split(":")[1] for line in lines[:3]] == [" 3 pictures of 1 classes"] * 3
    assert lines[-1] == "packed"
    assert "22 could not be read:" in shown.err
    assert "ant/zero0.jpg: empty file" in shown.err
    assert "and 2 more, all in manifest.json" in shown.err
    assert "readme.txt" in shown.err


def test_a_split_file(root):
    with open("s.json", "w") as file:
        json.dump({"train": ["cat"], "test": ["ant"]}, file)
    run("folder", "root", "--out", "packed", "--split", "s.json", "--size", 8, "--workers", 1)
    packed = PackedDataset.open("packed")
    assert packed.split("train").class_names == ("cat",)
    assert packed.split("test").class_names == ("ant",)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["foldr", "root"], OptionError, "unknown data set 'foldr'"),
        (["folder", "absent"], DataError, "there is no file or folder absent"),
        (["folder", "root", "--split", "0.5,0.5"], OptionError, "three fractions"),
        (["folder", "root", "--split", "no.json"], DataError, "no split file"),
        (["cub", "root"], DataError, "200 of 200 classes are missing|no class was found"),
        (["omniglot", "root"], DataError, "is not Omniglot: expected"),
        (["mini-imagenet", "root"], DataError, "cannot be used as mini-imagenet"),
        (["cifar-fs", "root"], DataError, "cannot be used as cifar-fs"),
    ],
)
def test_bad_input_leaves_nothing(root, arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        run(*arguments, "--out", "packed")
    assert "\n" not in str(caught.value)
    assert os.listdir() == ["root"]
