"""A sample of the pairs of `make campaign`: two commands at the same time."""

import sys

import pytest

from campaign import concurrency

SAMPLE = ("two `sort --move`", "`label` and `sort` on one sorted folder")


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_two_commands_at_the_same_time_lose_nothing():
    measured = concurrency.run(60, rounds=2, names=SAMPLE)
    assert measured["failures"] == []
    assert [one["rounds"] for one in measured["pairs"].values()] == [2, 2]
