"""The command `protorect demo`."""

import os
import re

import pytest

from helpers.demo import made_up_omniglot
from protorect.cli import _parse, demo, main


@pytest.fixture(autouse=True)
def _no_browser(monkeypatch):
    monkeypatch.setattr(demo, "open_page", lambda path: pytest.fail("a browser was opened"))


@pytest.fixture
def no_work(monkeypatch):
    for name in ("sort_photographs", "measure_omniglot"):
        monkeypatch.setattr(demo, name, lambda *_: pytest.fail("the work was started"))


def test_the_command_prints_tables_and_last_the_path(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr(demo, "open_page", opened.append)
    monkeypatch.setattr(
        demo, "measure_omniglot", lambda options, _: made_up_omniglot(options.episodes)
    )
    assert main(["demo", "--episodes", "3"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "protorect-demo.html"
    assert re.match(r"photographs: accuracy [\d.]+ % of 100 pictures, ", printed[-2])
    page = (tmp_path / "protorect-demo.html").read_text(encoding="utf-8")
    numbers = re.findall(r"[+-]?\d+\.\d\d ± \d+\.\d\d", "\n".join(printed))
    assert len(numbers) == 2 * (3 + 6 + 5)
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert all(number in page for number in numbers)
    assert "protorect demo --episodes 3 --seed" in page
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["protorect-demo-photographs", "protorect-demo.html"]
    assert [path.name for path in opened] == ["protorect-demo.html"]


def test_the_page_need_not_be_opened():
    assert not _parse(["demo", "--no-open"]).open


def test_an_invalid_number_is_an_error_before_the_work(tmp_path, capsys, monkeypatch, no_work):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--episodes", "0"]) == 2
    assert "episodes" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_is_an_error_before_the_work(tmp_path, capsys, no_work):
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert f"cannot write {tmp_path}: it is a folder" in capsys.readouterr().err


def test_the_photographs_are_not_written_beside_a_device(capsys, no_work):
    assert main(["demo", "--out", os.devnull]) == 2
    assert "give the name of a file" in capsys.readouterr().err


def test_a_path_below_a_file_is_an_error_before_the_work(tmp_path, capsys, no_work):
    (tmp_path / "file").write_text("not a folder")
    assert main(["demo", "--out", str(tmp_path / "file" / "page.html")]) == 2
    assert "cannot write" in capsys.readouterr().err
