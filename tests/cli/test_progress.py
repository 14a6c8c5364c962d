"""Progress outside of a terminal: a line every ten seconds."""

import pytest

from protorect.cli import progress


def test_lines_state_the_rate_and_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 0.0, 10.0, 15.0, 30.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.progress_bar("features") as update:
        for done in (100, 300, 400, 1000):
            update(done, 1000)
    assert capsys.readouterr().err == "features: 300 of 1000 (20/s), 35 s left\n"


def test_what_was_done_before_does_not_count_as_speed(capsys, monkeypatch):
    clock = iter([0.0, 0.0, 10.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.progress_bar("pictures") as update:
        update(900, 1000)
        update(950, 1000)
    assert "950 of 1000 (5/s), 10 s left" in capsys.readouterr().err


@pytest.mark.parametrize("total", [0, 5])
def test_a_step_without_time_is_silent(total, capsys):
    with progress.progress_bar("nothing") as update:
        update(total, total)
    assert capsys.readouterr().err == ""
