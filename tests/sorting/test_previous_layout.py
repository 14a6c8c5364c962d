"""Folders sorted before our own files moved into one subfolder are continued and undone.

`data/previous_layout.json` holds the files that `protorect sort --move` wrote then beside six moved
pictures, with ROOT for the folder of the pictures and of the sorted folder.
"""

import json
from pathlib import Path

import pytest

from helpers.sorting import COLORS, picture
from protorect._utils.files import sha256_of_file
from protorect.cli import main

FILES = json.loads((Path(__file__).parent / "data" / "previous_layout.json").read_text())


@pytest.fixture
def moved(colors):
    """A sorted folder of that layout; returns the tree before the sorting."""
    for path in colors.pictures.rglob("*.png"):
        if path.parent.name == "green" or int(path.stem) > 2:
            path.unlink()
    (colors.pictures / "green").rmdir()
    before = colors.tree()
    for name, text in FILES.items():
        (colors.out / name).parent.mkdir(parents=True, exist_ok=True)
        (colors.out / name).write_text(text.replace("ROOT", str(colors.root)))
    digests = {"predictions.csv": sha256_of_file(colors.out / "predictions.csv")}
    (colors.out / "journal" / "outputs.json").write_text(json.dumps(digests))
    picture(colors.out / "_thumbnails" / f"{'0' * 32}.jpg", COLORS["red"], 0)
    for name in ("blue", "red"):
        (colors.pictures / name).rename(colors.out / name)
        (colors.pictures / name).mkdir()
    journal = colors.out / "journal" / "0001.jsonl"
    head, *lines = map(json.loads, journal.read_text().splitlines())
    for line in lines:  # encoders differ
        line[8] = sha256_of_file(colors.out / line[7])
    journal.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)))
    return before


def sort(colors, *more):
    arguments = [colors.pictures, "--examples", colors.examples, "--out", colors.out]
    return main(["sort", *map(str, arguments), "--network", colors.weights, "--move", *more])


def test_undo_restores_the_previous_state(colors, moved):
    assert main(["undo", "--trust", str(colors.out)]) == 0
    assert colors.tree() == moved


def test_sorting_continues_and_is_undone(colors, moved):
    new = picture(colors.pictures / "new.png", COLORS["red"], 999)
    assert sort(colors, "--unknown", "0") == 0
    names = {path.name for path in colors.out.iterdir()}
    assert names == {"blue", "red", "predictions.csv", "index.html", ".protorect"}
    assert (colors.out / "red" / "new.png").exists()
    assert len((colors.out / "predictions.csv").read_text().splitlines()) == 8
    assert main(["undo", "--trust", str(colors.out)]) == 0
    new.unlink()
    assert colors.tree() == moved


def test_an_edited_table_is_kept(colors, moved):
    (colors.out / "predictions.csv").write_text("corrected")
    assert sort(colors) == 0
    assert (colors.out / "edited predictions.csv").read_text() == "corrected"
    assert main(["undo", "--trust", str(colors.out)]) == 0
    assert [path.name for path in colors.out.iterdir()] == ["edited predictions.csv"]


def test_other_folders_called_journal_do_not_have_that_layout(colors, capsys):
    (colors.pictures / "journal").mkdir()
    (colors.pictures / "journal" / "1.txt").write_text("dear diary")
    assert main(["undo", str(colors.pictures)]) == 2
    assert "nothing to undo" in capsys.readouterr().err


def test_without_a_seal_nothing_is_moved_to_where_a_journal_says(colors, moved, capsys):
    tree = colors.tree()
    assert main(["undo", str(colors.out)]) == 2
    assert f"protorect undo --trust {colors.out}" in capsys.readouterr().err
    now = {name: one for name, one in colors.tree().items() if "journal" not in name}
    assert now.items() >= {n: o for n, o in tree.items() if n.endswith(".png")}.items()
