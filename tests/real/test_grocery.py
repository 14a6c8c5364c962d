"""Sorting real photographs from five examples per class."""

import csv
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from protorect.cli import main


@pytest.fixture(scope="module")
def photos(real_data, tmp_path_factory):
    """Six classes with five examples each, their other pictures, and a seventh class."""
    root = tmp_path_factory.mktemp("grocery")
    with tarfile.open(real_data("grocery_photos.tar")) as archive:
        archive.extractall(root, filter="data")
    classes = sorted(path for path in (root / "grocery_photos").iterdir() if path.is_dir())
    rng = np.random.default_rng(0)
    for position, folder in enumerate(classes[::3]):
        files = sorted(folder.iterdir())
        for number, index in enumerate(rng.permutation(len(files))):
            kind = "examples" if number < 5 and position < 6 else "pictures"
            (root / kind / folder.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(files[index], root / kind / folder.name)
    return root


def accuracy_of_kept(out, classes):
    """Percent of the pictures of the classes in class folders that are in the right one."""
    with (out / "predictions.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if not row["folder"].startswith("_")]
    own = [row for row in rows if Path(row["path"]).parent.name in classes]
    return 100 * np.mean([row["folder"] == Path(row["path"]).parent.name for row in own])


def test_photographs_are_sorted_distractors_are_unknown_and_undo_restores_all(
    photos, tmp_path, capsys
):
    out = tmp_path / "out"
    before = sorted(
        (path, path.stat().st_mtime_ns) for path in (photos / "pictures").rglob("*.jpg")
    )
    arguments = [photos / "pictures", "--examples", photos / "examples", "--out", out]
    options = ["--eval", "--move", "--cache", tmp_path / "cache"]
    assert main(["sort", *map(str, [*arguments, *options])]) == 0
    evaluation = json.loads((out / "evaluation.json").read_text())
    assert evaluation["pictures"] == 120
    assert evaluation["accuracy"] >= 85
    assert accuracy_of_kept(out, {path.name for path in (photos / "examples").iterdir()}) >= 90
    assert evaluation["foreign_unknown"] > evaluation["foreign"] / 2
    assert main(["undo", str(out)]) == 0
    after = sorted((path, path.stat().st_mtime_ns) for path in (photos / "pictures").rglob("*.jpg"))
    assert after == before
    assert not out.exists()
