"""`protorect prepare`: what it prints, and its errors on bad input."""

import json
import os
import re

import pytest

from helpers.pictures import class_folders
from protorect.cli import main
from protorect.datasets.packed import PackedDataset


def run(*arguments):
    return main(["prepare", *map(str, arguments)])


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return class_folders(tmp_path / "root", ["ant", "bee", "cat"])


def test_it_prints_what_was_packed_and_what_was_not(root, capsys):
    for number in range(22):
        (root / "ant" / f"zero{number}.jpg").touch()
    (root / "readme.txt").touch()
    split = ["--split", "0.34,0.33,0.33", "--seed", 1]
    assert run("folder", root, "--out", "packed", "--size", 8, *split) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert [line.split(":")[1] for line in lines[:3]] == [" 3 pictures of 1 class"] * 3
    assert lines[-1] == "packed"
    assert "22 could not be read:" in shown.err
    assert "ant/zero0.jpg: empty file" in shown.err
    assert "and 2 more, all in manifest.json" in shown.err
    assert "readme.txt" in shown.err


def test_a_split_file(root):
    with open("s.json", "w") as file:
        json.dump({"train": ["cat"], "test": ["ant"]}, file)
    split = ["--split", "s.json", "--workers", 1]
    assert run("folder", "root", "--out", "packed", "--size", 8, *split) == 0
    packed = PackedDataset.open("packed")
    assert packed.split("train").class_names == ("cat",)
    assert packed.split("test").class_names == ("ant",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["foldr", "root"], "unknown data set 'foldr'"),
        (["folder", "absent"], "there is no file or folder absent"),
        (["folder", "root", "--split", "0.5,0.5"], "three fractions"),
        (["folder", "root", "--split", "no.json"], "no split file"),
        (["cub", "root"], "no class was found"),
        (["omniglot", "root"], "is not Omniglot: expected"),
        (["mini-imagenet", "root"], "cannot be used as mini-imagenet"),
        (["cifar-fs", "root"], "cannot be used as cifar-fs"),
    ],
)
def test_bad_input_is_reported_in_one_sentence_and_leaves_nothing(root, arguments, message, capsys):
    assert run(*arguments, "--out", "packed") == 2
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1
    assert os.listdir() == ["root"]
