"""What arrives is sorted, once it is whole."""

import time

import pytest

from helpers.sorting import COLOURS, picture
from protorect.sorting import watch as watching
from protorect.sorting.folder import SortedFolder
from protorect.sorting.sort import SortOptions, sort_into
from protorect.uncertainty.thresholds import Thresholds


@pytest.mark.parametrize("mode", ["link", "move"])
def test_arrivals_are_sorted_and_undone(world, monkeypatch, mode):
    before = world.tree()
    options = SortOptions(mode=mode, thresholds=Thresholds(0, 0))
    sorter, done = sort_into(world.pile, world.examples, world.out, options, source=world.weights)
    assert done.added == 24
    inbox = world.pile / "inbox"
    looks = 0

    def sleep(_):
        nonlocal looks
        looks += 1
        if looks == 1:
            picture(inbox / "whole.png", COLOURS["red"], 500)
            whole = picture(inbox / "slow.png", COLOURS["blue"], 501).read_bytes()
            (inbox / "slow.png").write_bytes(whole[:50])
            (inbox / "broken.png").write_bytes(b"no picture")
            sleep.whole = whole
        if looks == 2:
            (inbox / "slow.png").write_bytes(sleep.whole)
        if looks > 20:
            raise AssertionError("nothing came")

    monkeypatch.setattr(time, "sleep", sleep)
    rounds = watching.watch(sorter, world.pile, done.folder)
    first, second = next(rounds), next(rounds)
    rounds.close()
    assert [entry.to for entry in first.folder.batches[1].entries] == ["red/whole.png"]
    assert [problem.reason for problem in first.problems] == ["not a picture in a format read here"]
    assert [entry.to for entry in second.folder.batches[2].entries] == ["blue/slow.png"]
    assert second.problems == ()  # the broken one is not tried again
    assert len((world.out / "predictions.csv").read_text().splitlines()) == 27
    assert SortedFolder.open(world.out).undo() == []
    for path in inbox.iterdir():
        path.unlink()
    inbox.rmdir()
    assert world.tree() == before


def test_nothing_there_yet(world):
    empty = world.root / "inbox"
    empty.mkdir()
    given = (empty, world.examples, world.out, SortOptions())
    _, done = sort_into(*given, source=world.weights, may_be_empty=True)
    assert done.added == 0
    assert not world.out.exists()
