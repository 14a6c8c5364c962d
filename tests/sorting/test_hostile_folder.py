"""Undo touches nothing but what the sorting of this user touched in this folder."""

import json
import os
import shutil

import pytest

from helpers.sorting import COLORS, fill, picture, undo
from protorect import DataError
from protorect.cli import main
from protorect.labeling.placements import load_plans
from protorect.sorting.placing import _temporary


def journal_of(colors):
    (path,) = (colors.out / ".protorect" / "journal").iterdir()
    return path


@pytest.fixture
def planted(colors):
    """A picture in the sorted folder that a journal says came from somewhere else."""
    fill(colors, "move")
    return colors, colors.root / "home" / "autostart.png"


def test_a_journal_that_was_edited_is_refused_with_the_line(planted):
    colors, elsewhere = planted
    path = journal_of(colors)
    lines = path.read_text().splitlines(keepends=True)
    lines[3] = lines[3].replace(str(colors.pictures / "blue" / "2.png"), str(elsewhere))
    path.write_text("".join(lines))
    tree = colors.tree()
    with pytest.raises(DataError, match="line 4, is damaged: it was edited. Nothing was touched"):
        undo(colors)
    assert colors.tree() == tree


@pytest.mark.parametrize(
    "change", [lambda lines: lines[:-1], lambda lines: [*lines[:5], lines[-1]]]
)
def test_a_journal_without_some_of_its_lines_is_refused(planted, change):
    colors, _ = planted
    path = journal_of(colors)
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    with pytest.raises(DataError, match="is damaged: .*Nothing was touched"):
        undo(colors)


def test_the_journal_of_another_user_moves_nothing_unless_it_is_trusted(
    planted, monkeypatch, tmp_path, capsys
):
    colors, _ = planted
    tree = colors.tree()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert main(["undo", str(colors.out)]) == 2
    assert "was sorted by another user, on another computer" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "state")
    assert colors.tree() == tree
    assert main(["undo", "--trust", str(colors.out)]) == 0
    assert not colors.out.exists()


def test_a_journal_of_the_first_format_moves_nothing_either(planted):
    colors, elsewhere = planted
    path = journal_of(colors)
    head, row, *_ = map(json.loads, path.read_text().splitlines())
    row[0] = str(elsewhere)
    head["format"] = 1
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, row)))
    with pytest.raises(DataError, match="was sorted by another user"):
        undo(colors)
    assert not elsewhere.exists()


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_a_link_in_place_of_a_class_folder_is_not_followed(colors, mode):
    fill(colors, mode)
    outside = colors.root / "outside"
    os.rename(colors.out / "red", outside)
    (colors.out / "red").symlink_to(outside)
    names = sorted(os.listdir(outside))
    problems = undo(colors)
    assert {one.reason for one in problems} == {
        "a link in place of its folder leads elsewhere; left as it is"
    }
    assert len(problems) == 8
    assert sorted(os.listdir(outside)) == names


def test_another_file_in_the_place_of_a_moved_picture_stays(colors):
    fill(colors, "move")
    placed = colors.out / "red" / "0.png"
    placed.unlink()
    placed.write_text("something else")
    (problem,) = undo(colors)
    assert problem.reason == "another or a changed file is in its place; left as it is"
    assert placed.read_text() == "something else"


def test_a_picture_that_was_changed_is_moved_back_only_on_trust(colors):
    fill(colors, "move")
    with (colors.out / "red" / "0.png").open("ab") as file:
        file.write(b"a comment")
    assert len(undo(colors)) == 1
    assert main(["undo", "--trust", str(colors.out)]) == 0
    assert (colors.pictures / "red" / "0.png").read_bytes().endswith(b"a comment")
    assert not colors.out.exists()


def test_undo_goes_on_after_it_was_killed_between_two_file_systems(colors):
    """The name of the original was reserved, and the copy beside it was complete."""
    before = colors.tree()
    fill(colors, "move")
    (plan,) = load_plans(colors.out)
    source = colors.pictures / "red" / "0.png"
    source.touch()
    shutil.copy2(colors.out / "red" / "0.png", _temporary(source, plan))
    assert undo(colors) == []
    assert colors.tree() == before


def test_an_empty_file_of_somebody_else_in_the_place_of_the_original_stays(colors):
    fill(colors, "move")
    source = colors.pictures / "red" / "0.png"
    source.touch()
    (problem,) = undo(colors)
    assert "both stay" in problem.reason
    assert source.stat().st_size == 0
    assert (colors.out / "red" / "0.png").stat().st_size


@pytest.mark.parametrize("mode", ["link", "copy", "move"])
@pytest.mark.parametrize("length", [252, 255])
def test_names_of_the_greatest_length_are_placed_and_put_back(colors, mode, length):
    for folder in ("a", "b"):
        path = picture(colors.pictures / folder / "x.png", COLORS["red"], len(folder))
        os.rename(path, path.with_name(("n" * 300)[: length - 4] + ".png"))
    before = colors.tree()
    with_label = colors.out / "a"
    fill_all = fill(colors, mode)
    assert fill_all[0] == []
    assert with_label.is_dir()
    assert undo(colors) == []
    assert colors.tree() == before


def test_long_names_in_one_folder_are_shortened_to_make_room_for_a_number(colors):
    name = "é" * 124 + "abc.png"  # 255 bytes
    for folder in ("a", "b"):
        path = picture(colors.pictures / folder / "red" / "x.png", COLORS["red"], len(folder))
        os.rename(path, path.with_name(name))
    before = colors.tree()
    assert fill(colors, "move")[0] == []
    names = [one for one in os.listdir(colors.out / "red") if one.startswith("é")]
    assert sorted(len(os.fsencode(one)) for one in names) == [254, 255]
    assert undo(colors) == []
    assert colors.tree() == before
