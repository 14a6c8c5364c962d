"""The command `protorect demo`."""

import re

import pytest

from protorect.cli import demo, main
from protorect.demo import digits
from protorect.methods import PAPER
from protorect.paper.published import SHOTS


def test_the_command_shows_the_training_the_tables_and_last_the_path(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(digits, "_STEPS", 2)
    monkeypatch.setattr(digits, "_BATCH", 16)
    assert main(["demo", "--episodes", "3", "--epochs", "1", "--seed", "1"]) == 0
    shown = capsys.readouterr()
    assert "epoch 1/1: loss" in shown.err
    printed = shown.out.splitlines()
    assert printed[-1] == "protorect-demo.html"
    assert all(any(name in line for line in printed) for name in PAPER)
    page = (tmp_path / "protorect-demo.html").read_text(encoding="utf-8")
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert "protorect demo --episodes 3 --epochs 1 --seed 1" in page
    numbers = re.findall(r"[+-]?\d+\.\d\d ± \d+\.\d\d", "\n".join(printed))
    assert len(numbers) == len(SHOTS) * (4 * len(PAPER) - 1)
    assert all(number in page for number in numbers)
    assert [path.name for path in tmp_path.iterdir()] == ["protorect-demo.html"]


@pytest.mark.parametrize("option", ["--episodes", "--epochs"])
def test_an_invalid_number_is_an_error_before_the_work(option, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "learn", lambda *_: pytest.fail("the work was started"))
    assert main(["demo", option, "0"]) == 2
    assert option.strip("-") in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_is_an_error_before_the_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "learn", lambda *_: pytest.fail("the work was started"))
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert f"cannot write {tmp_path}: it is a folder" in capsys.readouterr().err


def test_a_path_below_a_file_is_an_error_before_the_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "learn", lambda *_: pytest.fail("the work was started"))
    (tmp_path / "file").write_text("not a folder")
    assert main(["demo", "--out", str(tmp_path / "file" / "page.html")]) == 2
    assert "cannot write" in capsys.readouterr().err
