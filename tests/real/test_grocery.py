"""Sorting real photographs from five examples a class."""

import json
import shutil
import tarfile

import numpy as np
import pytest

from protorect.cli import main


@pytest.fixture(scope="module")
def photos(real_data, tmp_path_factory):
    """EXAMPLES and PILE of six classes with five examples each, and a seventh folder of others."""
    root = tmp_path_factory.mktemp("grocery")
    with tarfile.open(real_data("grocery_photos.tar")) as archive:
        archive.extractall(root, filter="data")
    classes = sorted(path for path in (root / "grocery_photos").iterdir() if path.is_dir())
    rng = np.random.default_rng(0)
    for place, folder in enumerate(classes[::3]):
        files = sorted(folder.iterdir())
        for number, at in enumerate(rng.permutation(len(files))):
            kind = "examples" if number < 5 and place < 6 else "pile"
            (root / kind / folder.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(files[at], root / kind / folder.name)
    return root


def test_photographs_are_sorted_foreign_ones_set_aside_and_all_put_back(photos, tmp_path, capsys):
    out = tmp_path / "out"
    before = sorted((path, path.stat().st_mtime_ns) for path in (photos / "pile").rglob("*.jpg"))
    given = [photos / "pile", "--examples", photos / "examples", "--out", out]
    options = ["--eval", "--move", "--cache", tmp_path / "cache"]
    assert main(["sort", *map(str, [*given, *options])]) == 0
    found = json.loads((out / "evaluation.json").read_text())
    assert found["pictures"] == 120
    assert found["accuracy"] >= 85
    assert found["kept_accuracy"] >= 90
    assert found["foreign_unknown"] > found["foreign"] / 2
    assert main(["undo", str(out)]) == 0
    after = sorted((path, path.stat().st_mtime_ns) for path in (photos / "pile").rglob("*.jpg"))
    assert after == before
    assert not out.exists()
