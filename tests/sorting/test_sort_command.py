"""`protorect sort` and `protorect undo` from end to end."""

import csv
import errno
import os
import shutil
import subprocess
import sys
import time

import pytest

from helpers.sorting import OTHER, picture
from protorect.cli import main
from protorect.sorting.folder import open_folder


def sort(colors, *more, pictures=None, out=None):
    arguments = [
        pictures or colors.pictures,
        "--examples",
        colors.examples,
        "--out",
        out or colors.out,
    ]
    return main(["sort", *map(str, arguments), "--network", colors.weights, *more])


def table(colors, name="predictions.csv"):
    return list(csv.DictReader((colors.out / name).read_text().splitlines()))


@pytest.mark.parametrize("mode", ["--link", "--copy", "--move"])
def test_sorted_and_undone(colors, mode, capsys):
    before = colors.tree()
    assert sort(colors, mode, "--unknown", "0", "--unsure", "0") == 0
    printed = capsys.readouterr().out
    assert "8 red" in printed
    assert "expected accuracy in the class folders" in printed
    assert "labels that would help most:" in printed
    rows = table(colors)
    assert len(rows) == 24
    for row in rows:
        assert row["path"].split("/")[-2] == row["label"] == row["folder"]
        assert (colors.out / row["placed"]).exists()
    assert main(["undo", str(colors.out)]) == 0
    assert "24 pictures restored" in capsys.readouterr().out
    assert colors.tree() == before


def test_sorting_again_with_the_same_and_with_other_examples(colors, capsys):
    def without_journal():
        return {name: what for name, what in colors.tree().items() if "/journal/" not in name}

    assert sort(colors) == 0
    first = without_journal()
    assert sort(colors) == 0
    assert without_journal() == first
    for name in ("blue", "red"):
        (colors.examples / name).rename(colors.examples / f"{name}ish")
    assert sort(colors, "--copy") == 0
    assert not (colors.out / "red").exists()
    assert (colors.out / "redish").is_dir()


def test_what_was_moved_stays_and_new_pictures_are_added(colors, capsys):
    before = colors.tree()
    assert sort(colors, "--move", "--unknown", "0") == 0
    assert sort(colors, "--move") == 0
    assert sort(colors, "--copy") == 2
    assert "holds pictures that were moved into it; continue with --move" in capsys.readouterr().err
    new = picture(colors.pictures / "new.png", (210, 50, 40), 999)
    assert sort(colors, "--move", "--unknown", "0") == 0
    assert (colors.out / "red" / "new.png").exists()
    assert len(table(colors)) == 25
    assert main(["undo", str(colors.out)]) == 0
    new.unlink()
    assert colors.tree() == before


def test_an_interrupted_move_is_continued_by_the_same_command(colors, monkeypatch, capsys):
    from protorect.sorting import folder

    before = colors.tree()
    place, count = folder.place, 0

    def interrupted(*arguments):
        nonlocal count
        count += 1
        if count == 10:
            raise KeyboardInterrupt
        return place(*arguments)

    monkeypatch.setattr(folder, "place", interrupted)
    assert sort(colors, "--move") == 130
    monkeypatch.setattr(folder, "place", place)
    assert len(list(colors.pictures.rglob("*.png"))) == 15
    assert sort(colors, "--move", pictures=f"{colors.pictures}/**/*.png") == 0
    assert "15 left by an interruption, now in their place" in capsys.readouterr().out
    assert len(table(colors)) == 24
    assert main(["undo", str(colors.out)]) == 0
    assert colors.tree() == before


def test_unreadable_pictures_are_in_the_table_of_errors(colors, capsys):
    (colors.pictures / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    (colors.pictures / "notes.txt").write_text("hello")
    assert sort(colors) == 1
    broken, notes = table(colors, "errors.csv")
    assert broken["reason"] == "not a picture in a format read here"
    assert notes["reason"] == "skipped: documents are not read"
    assert len(table(colors)) == 24
    printed = capsys.readouterr()
    assert "broken.jpg: not a picture" in printed.err
    assert "1 skipped: documents" in printed.out
    (colors.pictures / "broken.jpg").unlink()
    (colors.pictures / "notes.txt").unlink()
    assert sort(colors) == 0
    assert not (colors.out / "errors.csv").exists()


def test_output_and_examples_may_lie_among_the_pictures(colors):
    colors.out = colors.pictures / "sorted"
    shutil.move(colors.examples, colors.pictures / "examples")
    colors.examples = colors.pictures / "examples"
    before = colors.tree()
    assert sort(colors, "--move") == 0
    assert len(table(colors)) == 24
    assert sort(colors, "--move") == 0
    assert len(table(colors)) == 24
    assert main(["undo", str(colors.out)]) == 0
    assert colors.tree() == before


def test_a_picture_twice_and_a_copy_of_an_example(colors, capsys):
    shutil.copy(colors.pictures / "red" / "0.png", colors.pictures / "twin.png")
    shutil.copy(colors.examples / "blue" / "0.png", colors.pictures / "shown.png")
    assert sort(colors) == 0
    rows = {os.path.basename(row["path"]): row for row in table(colors)}
    assert rows["shown.png"]["label"] == "blue"
    assert "1 already among the examples" in capsys.readouterr().out
    twins = [row for row in table(colors) if row["path"].endswith(("red/0.png", "twin.png"))]
    assert twins[0]["probability"] == twins[1]["probability"]


def test_distractors_are_unknown(colors):
    for seed in range(8):
        picture(colors.pictures / "other" / f"{seed}.png", OTHER, 100 + seed)
    assert sort(colors) == 0
    folders = [row["folder"] for row in table(colors) if "/other/" in row["path"]]
    assert folders.count("_unknown") >= 6


def test_tables_in_other_places_and_formats(colors, tmp_path):
    pytest.importorskip("pyarrow")
    assert sort(colors, "--csv", str(tmp_path / "mine.csv"), "--parquet") == 0
    assert (tmp_path / "mine.csv").read_text() == (colors.out / "predictions.csv").read_text()
    assert (colors.out / "predictions.parquet").stat().st_size > 100
    header = (
        "path,label,probability,runner_up,margin,familiarity,folder,placed,ood,status,predicted"
    )
    assert (tmp_path / "mine.csv").read_text().splitlines()[0] == header
    for row in table(colors):
        assert float(row["ood"]) == pytest.approx(1 - float(row["familiarity"]))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--unknown", "2"], "--unknown is 2.0; it must lie in 0 .. 1"),
        (["--unsure", "x"], "--unsure=x: a number is expected"),
        (["--unsure", "nan"], "--unsure is nan; it must lie in 0 .. 1"),
        (["--method", "bd-cspn:zz=1"], "unknown option of bd-cspn 'zz'. Did you mean 'z'?"),
        (["--method", "bd-cspm"], "Did you mean 'bd-cspn'"),
        (["--network", "nowhere"], "unknown run, weights file or pretrained backbone"),
        (["--examples", "nowhere"], "there are no examples at nowhere"),
        (["--device", "nowhere"], "device 'nowhere' cannot be used"),
    ],
)
def test_mistakes_are_reported_and_nothing_is_touched(colors, capsys, more, message):
    before = colors.tree()
    assert sort(colors, *more) == 2
    assert message in capsys.readouterr().err
    assert colors.tree() == before


def test_undo_of_a_folder_that_was_not_sorted(colors, capsys):
    assert main(["undo", str(colors.pictures)]) == 2
    assert "has no journal of `protorect sort`" in capsys.readouterr().err


def test_no_pictures_are_an_error(colors, capsys):
    (colors.root / "empty").mkdir()
    assert sort(colors, pictures=colors.root / "empty") == 2
    assert "there is no picture to sort" in capsys.readouterr().err
    assert not colors.out.exists()


@pytest.mark.parametrize("command", ["sort", "undo"])
def test_a_second_command_on_one_folder_is_refused(colors, capsys, command):
    assert sort(colors) == 0
    before = {name: what for name, what in colors.tree().items() if not name.endswith("/lock")}
    with open_folder(colors.out):
        code = sort(colors) if command == "sort" else main(["undo", str(colors.out)])
    assert code == 2
    assert f"{colors.out} is being written by another command" in capsys.readouterr().err
    assert colors.tree() == before


def test_sorting_at_the_same_time_loses_no_picture(colors):
    halves = [colors.root / "half 0", colors.root / "half 1"]
    for number, path in enumerate(sorted(colors.pictures.rglob("*.png"))):
        half = halves[number % 2] / path.parent.name
        half.mkdir(parents=True, exist_ok=True)
        path.rename(half / path.name)
    before = colors.tree()
    arguments = ["--examples", colors.examples, "--out", colors.out, "--network", colors.weights]
    code = "import sys; from protorect.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "sort", "--move", "--no-sheet", *map(str, arguments)]
    processes = [
        subprocess.Popen([*command, str(half)], stderr=subprocess.DEVNULL) for half in halves
    ]
    codes = sorted(process.wait() for process in processes)
    assert codes in ([0, 0], [0, 2])  # one after the other, or one was refused
    assert main(["undo", str(colors.out)]) == 0
    assert colors.tree() == before


def test_links_that_cannot_be_made_are_reported(colors, monkeypatch, capsys):
    def forbidden(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", forbidden)
    assert sort(colors) == 0
    assert "24 hard links, as symbolic links cannot be made here" in capsys.readouterr().out
    monkeypatch.setattr(os, "link", forbidden)
    assert sort(colors) == 0
    assert "24 copies, as links cannot be made here" in capsys.readouterr().out


def test_copies_are_replaced_after_the_pictures_were_renamed(colors):
    assert sort(colors, "--copy") == 0
    before = sorted(path.name for path in colors.out.rglob("*.png"))
    colors.pictures = colors.pictures.rename(colors.root / "renamed")
    assert sort(colors, "--copy") == 0
    assert sorted(path.name for path in colors.out.rglob("*.png")) == before


def test_watch_prints_each_new_picture_until_it_is_interrupted(colors, monkeypatch, capsys):
    new = colors.pictures / "new.png"
    scans = 0

    def sleep(_):
        nonlocal scans
        scans += 1
        if scans == 1:
            picture(new, (210, 50, 40), 999)
        if scans == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    assert sort(colors, "--watch", "--unknown", "0", "--unsure", "0") == 0
    printed = capsys.readouterr().out
    assert "watching; end with Ctrl-C" in printed
    assert f"red: {new}" in printed
    assert len(table(colors)) == 25
    assert main(["undo", str(colors.out)]) == 0
    assert not colors.out.exists()
