"""Pictures that arrive are sorted once they are complete."""

import errno
import os
import time

import pytest

from helpers.sorting import COLORS, picture, undo
from protorect import DataError, LabelingSession
from protorect.cli import main
from protorect.sorting.sort import SortOptions, watch
from protorect.uncertainty.thresholds import Thresholds


@pytest.mark.parametrize("unreadable", ["examples", "out/.protorect/journal"])
def test_a_folder_that_cannot_be_listed_is_named(colors, monkeypatch, capsys, unreadable):
    arguments = ["--examples", str(colors.examples), "--network", colors.weights, "--no-cache"]
    arguments = [str(colors.pictures), *arguments, "--out", str(colors.out)]
    assert main(["sort", *arguments]) == 0
    listdir, folder = os.listdir, str(colors.root / unreadable)

    def fails(path):
        if os.fspath(path) == folder:
            raise OSError(errno.EIO, "Input/output error", folder)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", fails)
    capsys.readouterr()
    assert main(["sort", "--watch", *arguments]) == 2
    assert capsys.readouterr().err == f"protorect: cannot read {folder}: Input/output error.\n"
    with pytest.raises(DataError, match=f"^cannot read {folder}: Input/output error.$"):
        LabelingSession.open(colors.out, examples=colors.examples, source=colors.weights)


@pytest.mark.parametrize("mode", ["link", "move"])
def test_arriving_pictures_are_sorted_and_undone(colors, monkeypatch, mode):
    before = colors.tree()
    options = SortOptions(mode=mode, thresholds=Thresholds(0, 0))
    results = watch(colors.pictures, colors.examples, colors.out, options, source=colors.weights)
    assert len(next(results).folder.placements) == 24
    assert main(["undo", str(colors.out)]) == 2  # the lock is held
    inbox = colors.pictures / "inbox"
    scans = 0

    def sleep(_):
        nonlocal scans
        scans += 1
        if scans == 1:
            picture(inbox / "whole.png", COLORS["red"], 500)
            sleep.whole = picture(inbox / "slow.png", COLORS["blue"], 501).read_bytes()
            (inbox / "slow.png").write_bytes(sleep.whole[:50])
            (inbox / "broken.png").write_bytes(b"no picture")
        if scans == 2:
            (inbox / "slow.png").write_bytes(sleep.whole)
        assert scans <= 20, "no picture was sorted"

    monkeypatch.setattr(time, "sleep", sleep)
    first = next(results)
    assert [one.target for one in first.folder.plans[1].placements] == ["red/whole.png"]
    assert [problem.reason for problem in first.problems] == ["not a picture in a format read here"]
    second = next(results)
    assert [one.target for one in second.folder.plans[2].placements] == ["blue/slow.png"]
    assert second.problems == []  # the broken one is not tried again
    results.close()
    assert len((colors.out / "predictions.csv").read_text().splitlines()) == 27
    assert undo(colors) == []
    for path in inbox.iterdir():
        path.unlink()
    inbox.rmdir()
    assert colors.tree() == before


def test_without_pictures_nothing_is_left_behind(colors):
    empty = colors.root / "inbox"
    empty.mkdir()
    results = watch(empty, colors.examples, colors.out, SortOptions(), source=colors.weights)
    assert next(results).folder.placements == []
    results.close()
    assert not colors.out.exists()
