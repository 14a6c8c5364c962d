"""`protorect sort` and `protorect undo` from end to end."""

import csv
import os
import shutil

import pytest

from helpers.sorting import OTHER, picture
from protorect.cli import main


def sort(world, *more, pictures=None, out=None):
    given = [pictures or world.pile, "--examples", world.examples, "--out", out or world.out]
    return main(["sort", *map(str, given), "--network", world.weights, *more])


def table(world, name="predictions.csv"):
    return list(csv.DictReader((world.out / name).read_text().splitlines()))


@pytest.mark.parametrize("mode", ["--link", "--copy", "--move"])
def test_sorted_and_undone(world, mode, capsys):
    before = world.tree()
    assert sort(world, mode, "--unknown", "0", "--unsure", "0") == 0
    assert "8 red" in capsys.readouterr().out
    rows = table(world)
    assert len(rows) == 24
    for row in rows:
        assert row["path"].split("/")[-2] == row["label"] == row["folder"]
        assert (world.out / row["placed"]).exists()
    assert main(["undo", str(world.out)]) == 0
    assert world.tree() == before


def test_the_same_again_and_with_other_examples(world, capsys):
    assert sort(world) == 0
    first = world.tree()
    assert sort(world) == 0
    assert world.tree() == first
    for name in ("blue", "red"):
        (world.examples / name).rename(world.examples / f"{name}ish")
    assert sort(world, "--copy") == 0
    assert not (world.out / "red").exists()
    assert (world.out / "redish").is_dir()


def test_what_was_moved_stays_and_new_pictures_are_added(world, capsys):
    before = world.tree()
    assert sort(world, "--move", "--unknown", "0") == 0
    assert sort(world, "--move") == 0
    assert sort(world, "--copy") == 2
    assert "holds pictures that were moved into it; go on with --move" in capsys.readouterr().err
    new = picture(world.pile / "new.png", (210, 50, 40), 999)
    assert sort(world, "--move", "--unknown", "0") == 0
    assert (world.out / "red" / "new.png").exists()
    assert len(table(world)) == 25
    assert main(["undo", str(world.out)]) == 0
    new.unlink()
    assert world.tree() == before


def test_an_interrupted_move_goes_on_with_the_same_command(world, monkeypatch, capsys):
    from protorect.sorting import folder

    before = world.tree()
    place, count = folder.place, 0

    def interrupted(*given):
        nonlocal count
        count += 1
        if count == 10:
            raise KeyboardInterrupt
        place(*given)

    monkeypatch.setattr(folder, "place", interrupted)
    assert sort(world, "--move") == 130
    monkeypatch.setattr(folder, "place", place)
    assert len(list(world.pile.rglob("*.png"))) == 15
    assert sort(world, "--move", pictures=f"{world.pile}/**/*.png") == 0
    assert "15 left by an interruption, now in their place" in capsys.readouterr().out
    assert len(table(world)) == 24
    assert main(["undo", str(world.out)]) == 0
    assert world.tree() == before


def test_unreadable_pictures_are_in_the_table_of_errors(world, capsys):
    (world.pile / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    (world.pile / "notes.txt").write_text("hello")
    assert sort(world) == 1
    assert table(world, "errors.csv")[0]["reason"] == "not a picture in a format read here"
    assert len(table(world)) == 24
    told = capsys.readouterr()
    assert "broken.jpg: not a picture" in told.err
    assert "1 other files left alone" in told.out
    (world.pile / "broken.jpg").unlink()
    assert sort(world) == 0
    assert not (world.out / "errors.csv").exists()


def test_the_output_may_lie_in_the_pile_and_the_examples_too(world):
    world.out = world.pile / "sorted"
    shutil.move(world.examples, world.pile / "examples")
    world.examples = world.pile / "examples"
    before = world.tree()
    assert sort(world, "--move") == 0
    assert len(table(world)) == 24
    assert sort(world, "--move") == 0
    assert len(table(world)) == 24
    assert main(["undo", str(world.out)]) == 0
    assert world.tree() == before


def test_the_same_picture_twice_and_an_example_in_the_pile(world, capsys):
    shutil.copy(world.pile / "red" / "0.png", world.pile / "twin.png")
    shutil.copy(world.examples / "blue" / "0.png", world.pile / "shown.png")
    assert sort(world) == 0
    rows = {os.path.basename(row["path"]): row for row in table(world)}
    assert rows["shown.png"]["label"] == "blue"
    assert "1 already among the examples" in capsys.readouterr().out
    twins = [row for row in table(world) if row["path"].endswith(("red/0.png", "twin.png"))]
    assert twins[0]["probability"] == twins[1]["probability"]


def test_foreign_pictures_go_to_unknown(world):
    for seed in range(8):
        picture(world.pile / "other" / f"{seed}.png", OTHER, 100 + seed)
    assert sort(world) == 0
    foreign = [row["folder"] for row in table(world) if "/other/" in row["path"]]
    assert foreign.count("_unknown") >= 6


def test_tables_elsewhere(world, tmp_path):
    pytest.importorskip("pyarrow")
    assert sort(world, "--csv", str(tmp_path / "mine.csv"), "--parquet") == 0
    assert (tmp_path / "mine.csv").read_text() == (world.out / "predictions.csv").read_text()
    assert (world.out / "predictions.parquet").stat().st_size > 100


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--unknown", "2"], "unknown is 2.0; it must lie in 0 .. 1"),
        (["--method", "bd-cspm"], "Did you mean 'bd-cspn'"),
        (["--network", "nowhere"], "unknown run, weights file or pretrained backbone"),
        (["--examples", "nowhere"], "there are no examples at nowhere"),
        (["--device", "nowhere"], "device 'nowhere' cannot be used"),
    ],
)
def test_mistakes_end_with_a_sentence_and_touch_nothing(world, capsys, more, message):
    before = world.tree()
    assert sort(world, *more) == 2
    assert message in capsys.readouterr().err
    assert world.tree() == before


def test_undo_of_something_else(world, capsys):
    assert main(["undo", str(world.pile)]) == 2
    assert "has no journal of `protorect sort`" in capsys.readouterr().err


def test_an_empty_pile(world, capsys):
    (world.root / "empty").mkdir()
    assert sort(world, pictures=world.root / "empty") == 2
    assert "there is no picture to sort" in capsys.readouterr().err
    assert not world.out.exists()
