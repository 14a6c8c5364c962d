"""A sample of the faults of `make campaign`: a few operations of a few commands fail."""

import subprocess
import sys

import pytest
from campaign.file_faults import Outcome, compiler

from campaign import PARTS, faults, seconds_of

SAMPLE = ("sort --move", "undo of --move", "save")


@pytest.mark.skipif(
    sys.platform != "linux" or compiler() is None, reason="needs Linux and a C compiler"
)
def test_commands_finish_after_a_fault():
    measured = faults.run(60, sample=2, names=SAMPLE)
    assert measured["failures"] == []
    assert list(measured["commands"]) == list(SAMPLE)
    assert all(one["tried"] == one["points"] >= 6 for one in measured["commands"].values())


@pytest.mark.parametrize(
    ("code", "output", "problem"),
    [
        (0, "", ""),
        (2, "protorect: cannot write /x: No space left on device.", ""),
        (-9, "", ""),
        (2, "Traceback (most recent call last):\n  ...\nOSError: full", "traceback: OSError: full"),
        (-14, "", "it took more than 60 s"),
        (3, "", "exit code 3"),
    ],
)
def test_how_a_command_may_end(code, output, problem):
    assert Outcome(code, output, 0).problem == problem


def test_what_is_missing_left_or_different_is_found():
    file = ("file", b"1")
    assert faults.difference({"1/a": file}, {"1/a": file}) == ""
    assert faults.difference({}, {"1/a": file}) == "1/a is missing"
    assert faults.difference({"1/a": file, "1/b": file}, {"1/a": file}) == "1/b is left"
    assert faults.difference({"1/a": ("file", b"2")}, {"1/a": file}) == "1/a differs"
    assert faults.difference({"1/out": ("folder", None)}, {}) == ""
    assert faults.difference({"1/out/.x.part": file}, None) == "1/out/.x.part is left"


def test_every_part_has_its_share_of_the_time_that_is_left():
    names, left = list(PARTS), float(sum(PARTS.values()))
    assert [seconds_of(name, names, left) for name in names[:1]] == [PARTS[names[0]]]
    last = names[-1]
    assert seconds_of(last, names, 100.0) == 100.0
    assert 0 < seconds_of(names[-2], names, 100.0) < 100.0
    assert seconds_of(last, names, -5.0) == 0.0
    assert sum(PARTS.values()) <= 1160


def test_a_part_that_does_not_exist_is_refused():
    ended = subprocess.run(
        [sys.executable, "-m", "campaign", "nothing"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "there is no part nothing; there are bombs," in ended.stderr
