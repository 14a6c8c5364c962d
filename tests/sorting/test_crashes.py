"""A crash before or after any file operation loses nothing."""

import shutil
from contextlib import nullcontext

import pytest

from helpers.crashes import crash_at
from helpers.sorting import predicted, undo, unplaced
from protorect.labeling.placements import load_plans
from protorect.sorting import folder as folders
from protorect.sorting.folder import open_folder


@pytest.fixture
def few(colors, monkeypatch):
    """Four pictures; the lock of a process that crashes is released by the system."""
    for name in ("blue", "green"):
        shutil.rmtree(colors.pictures / name)
    for number in range(4, 8):
        (colors.pictures / "red" / f"{number}.png").unlink()
    monkeypatch.setattr(folders, "locked", lambda *_: nullcontext())
    return colors


def sort(colors, mode):
    with open_folder(colors.out) as folder:
        folder.add(predicted(colors.pictures), mode, [])
        with folder.output("predictions.csv") as path:
            path.write_text("a table")


def check_undo(colors, before):
    """Undo restores everything; without a journal the empty folder may stay."""
    has_journal = bool(load_plans(colors.out))
    assert undo(colors) == []
    tree = colors.tree()
    if not has_journal:
        tree.pop("out", None)
        shutil.rmtree(colors.out, ignore_errors=True)
    assert tree == before


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("mode", ["link", "copy", "move"])
def test_undo_after_a_crash_while_sorting(few, mode, after):
    before = few.tree()
    number, crashed = 0, True
    while crashed:
        number += 1
        with crash_at(number, after) as crashed:
            sort(few, mode)
        check_undo(few, before)
    assert number > 10


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("mode", ["link", "copy", "move"])
def test_a_second_undo_after_a_crash_in_the_first(few, mode, after):
    before = few.tree()
    number, crashed = 0, True
    while crashed:
        number += 1
        sort(few, mode)
        with crash_at(number, after) as crashed:
            undo(few)
        check_undo(few, before)
    assert number > 8


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
def test_a_move_is_continued_after_a_crash(few, after):
    before = few.tree()
    number, crashed = 0, True
    while crashed:
        number += 1
        with crash_at(number, after) as crashed:
            sort(few, "move")
        with open_folder(few.out) as folder:
            _, problems = folder.finish()
        assert problems == []
        assert unplaced(few) == 0
        check_undo(few, before)
    assert number > 10
