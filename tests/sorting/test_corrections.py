"""The natural ways to correct a sorting, through the real command."""

import csv
import os
import shutil

import pytest

from helpers.sorting import COLORS, OTHER, picture
from protorect.cli import main

KEEP = ("--unknown", "0", "--unsure", "0")


@pytest.fixture
def colors(colors):
    """With four pictures that are like red ones, and are called pink."""
    for number in range(4):
        picture(colors.pictures / "pink" / f"p{number}.png", (225, 60, 75), 200 + number)
    return colors


def sort(colors, *more, examples=None, out=None):
    given = [colors.examples] if examples is None else examples
    arguments = [colors.pictures, *(one for e in given for one in ("--examples", e))]
    arguments += ["--out", out or colors.out, "--network", colors.weights, *KEEP, *more]
    return main(["sort", *map(str, arguments)])


def table(colors, out=None):
    with open((out or colors.out) / "predictions.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rows(colors, out=None):
    return {os.path.relpath(row["path"], colors.pictures): row for row in table(colors, out)}


def write(path, lines):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)


def places(colors, name):
    """Where the picture of this name is in the sorted folder."""
    return [os.path.relpath(path, colors.out) for path in colors.out.rglob(name)]


@pytest.mark.parametrize("alone", [True, False])
def test_an_edited_table_of_predictions(colors, capsys, alone):
    assert sort(colors) == 0
    lines = table(colors)
    for line in lines:
        if "/pink/p0" in line["path"]:
            assert line["label"] == "red"
            line["label"] = "blue"
        if line["path"].endswith("green/0.png"):
            line["status"] = "accepted"
    write(colors.out / "predictions.csv", lines)
    capsys.readouterr()
    table_file = colors.out / "predictions.csv"
    given = [table_file] if alone else [colors.examples, table_file]
    assert sort(colors, examples=given) == 0
    printed = capsys.readouterr().out
    assert "2 already among the examples" in printed
    assert "red -> blue" in printed
    after = rows(colors)
    assert len(after) == 28
    assert (after["pink/p0.png"]["label"], after["pink/p0.png"]["status"]) == ("blue", "example")
    assert after["green/0.png"]["status"] == "example"
    assert after["green/1.png"]["status"] == "proposed"
    assert places(colors, "p0.png") == ["blue/p0.png"]


def test_a_table_elsewhere_is_completed_by_the_examples_of_the_folder(colors, tmp_path, capsys):
    assert sort(colors, "--csv", str(tmp_path / "mine.csv")) == 0
    assert sort(colors, examples=[tmp_path / "mine.csv"], out=tmp_path / "new") == 2
    assert "the examples have no class" in capsys.readouterr().err
    lines = table(colors)
    lines[0]["label"] = "red"
    write(tmp_path / "mine.csv", lines)
    assert sort(colors, examples=[tmp_path / "mine.csv"]) == 0
    assert table(colors)[0]["label"] == "red"
    assert {row["label"] for row in table(colors)} == set(COLORS)


@pytest.mark.parametrize("mode", ["--link", "--copy", "--move"])
def test_a_dragged_picture(colors, capsys, mode):
    before = colors.tree()
    assert sort(colors, mode) == 0
    (colors.out / "red" / "p0.png").rename(colors.out / "blue" / "p0.png")
    for again in range(3):
        capsys.readouterr()
        assert sort(colors, mode) == 0
        printed = capsys.readouterr().out
        assert ("1 moved by hand since the last sorting" in printed) == (
            mode == "--move" or not again
        )
        assert places(colors, "p0.png") == ["blue/p0.png"]
        after = {os.path.basename(row["path"]): row for row in table(colors)}
        assert (after["p0.png"]["label"], after["p0.png"]["placed"]) == ("blue", "blue/p0.png")
        assert len(table(colors)) == 28
        if mode != "--move" and not again:
            assert "red -> blue" in printed
    # It is dragged once more, and then everything is undone.
    (colors.out / "blue" / "p0.png").rename(colors.out / "green" / "p0 (1).png")
    assert sort(colors, mode) == 0
    assert places(colors, "p0*.png") == ["green/p0 (1).png"]
    assert main(["undo", str(colors.out)]) == 0
    assert colors.tree() == before


def test_undo_takes_back_what_was_dragged(colors):
    before = colors.tree()
    for mode in ("--link", "--copy", "--move"):
        assert sort(colors, mode) == 0
        (colors.out / "plum").mkdir()
        (colors.out / "red" / "p0.png").rename(colors.out / "plum" / "p0.png")
        assert main(["undo", str(colors.out)]) == 0
        assert colors.tree() == before


def test_a_copied_picture_exists_once_and_a_new_folder_is_a_class(colors):
    assert sort(colors) == 0
    (colors.out / "plum").mkdir()
    shutil.copy(colors.out / "red" / "p0.png", colors.out / "plum" / "p0.png")
    assert sort(colors) == 0
    assert places(colors, "p0.png") == ["plum/p0.png"]
    assert rows(colors)["pink/p1.png"]["label"] == "plum"


def test_a_picture_from_elsewhere_is_an_example_and_stays(colors, tmp_path):
    assert sort(colors) == 0
    other = picture(colors.out / "red" / "mine.png", (200, 40, 40), 900)
    content = other.read_bytes()
    assert sort(colors) == 0
    assert other.read_bytes() == content
    assert len(table(colors)) == 28
    assert main(["undo", str(colors.out)]) == 0
    assert other.read_bytes() == content


def test_what_was_put_among_the_unsure_is_sorted_again(colors):
    assert sort(colors) == 0
    (colors.out / "_unsure").mkdir()
    (colors.out / "red" / "p0.png").rename(colors.out / "_unsure" / "p0.png")
    assert sort(colors) == 0
    assert places(colors, "p0.png") == ["red/p0.png"]


def test_a_changed_copy_that_had_to_stay_is_no_example(colors, capsys):
    assert sort(colors, "--copy") == 0
    picture(colors.out / "red" / "p0.png", OTHER, 901)
    assert sort(colors, "--copy") == 1
    capsys.readouterr()
    assert sort(colors, "--copy") == 0
    assert "moved by hand" not in capsys.readouterr().out


def test_a_sorted_folder_as_examples(colors, tmp_path, capsys):
    assert sort(colors) == 0
    (colors.out / "red" / "p0.png").rename(colors.out / "blue" / "p0.png")
    other = tmp_path / "other"
    assert sort(colors, examples=[colors.out], out=other) == 0
    assert "1 already among the examples" in capsys.readouterr().out
    after = rows(colors, other)
    assert len(after) == 28
    assert after["pink/p0.png"]["folder"] == "blue"
    assert {row["folder"] for row in after.values()} == set(COLORS)


def test_a_sorted_folder_without_its_journal(colors, tmp_path):
    assert sort(colors, "--copy", "--unsure", "0.9") == 0
    shutil.rmtree(colors.out / ".protorect")
    (colors.out / "_thumbnails").mkdir()
    shutil.copy(colors.pictures / "red" / "0.png", colors.out / "_thumbnails" / "0.png")
    assert sort(colors, examples=[colors.out], out=tmp_path / "other") == 0
    assert {row["label"] for row in rows(colors, tmp_path / "other").values()} <= set(COLORS)


@pytest.mark.parametrize("way", ["folder", "table", "predictions", "dragged"])
def test_unknown_can_be_taught(colors, tmp_path, way):
    given = [colors.examples]
    taught = colors.pictures / "pink" / "p0.png"
    assert sort(colors) == 0
    if way == "folder":
        (colors.examples / "_unknown").mkdir()
        shutil.copy(taught, colors.examples / "_unknown")
    elif way == "table":
        (tmp_path / "t.csv").write_text(f"File;Class\n{taught};_unknown\n")
        given.append(tmp_path / "t.csv")
    elif way == "predictions":
        lines = table(colors)
        next(line for line in lines if "/p0" in line["path"])["label"] = "_unknown"
        write(tmp_path / "p.csv", lines)
        given.append(tmp_path / "p.csv")
    else:
        (colors.out / "_unknown").mkdir()
        (colors.out / "red" / "p0.png").rename(colors.out / "_unknown" / "p0.png")
    for _ in range(2):
        assert sort(colors, examples=given) == 0
        expected = [] if way == "table" else ["_unknown/p0.png"]  # an example only
        assert places(colors, "p0.png") == expected
        assert {row["label"] for row in table(colors)} == set(COLORS)
        assert rows(colors)["red/0.png"]["folder"] == "red"


@pytest.mark.parametrize("way", ["table", "predictions", "dragged"])
def test_a_taught_unknown_picture_makes_pictures_like_it_unknown(colors, tmp_path, way):
    """Some pink pictures are said to be of no class: the others become unknown."""
    colors.add_pink()
    given = [colors.examples]
    assert sort(colors) == 0
    before = rows(colors)
    taught = [f"p{number}.png" for number in range(3)]
    if way == "table":
        lines = "".join(f"{colors.pictures}/pink/{name},_unknown\n" for name in taught)
        (tmp_path / "t.csv").write_text(f"path,label\n{lines}")
        given.append(tmp_path / "t.csv")
    elif way == "predictions":
        lines = table(colors)
        for line in lines:
            if os.path.basename(line["path"]) in taught:
                line["label"] = "_unknown"
        write(colors.out / "predictions.csv", lines)
        given = [colors.out / "predictions.csv"]
    else:
        (colors.out / "_unknown").mkdir(exist_ok=True)
        for name in taught:
            (place,) = places(colors, name)
            (colors.out / place).rename(colors.out / "_unknown" / name)
    assert sort(colors, examples=given) == 0
    after = rows(colors)
    rest = [f"pink/p{number}.png" for number in range(3, 8)]
    low = max(float(before[name]["ood"]) for name in rest)
    high = min(float(after[name]["ood"]) for name in rest)
    assert high > max(low, *(float(after[f"red/{number}.png"]["ood"]) for number in range(8)))
    assert sort(colors, "--unknown", str(1 - (low + high) / 2), examples=given) == 0
    assert {rows(colors)[name]["folder"] for name in rest} == {"_unknown"}


def test_the_later_of_two_sources_counts_and_that_is_said(colors, tmp_path, capsys):
    example = colors.examples / "red" / "0.png"
    (tmp_path / "t.csv").write_text(f"path,label\n{example},green\n")
    shutil.copy(colors.examples / "red" / "1.png", tmp_path / "copy.png")
    (tmp_path / "u.csv").write_text("filename\tLabel\ncopy.png\tgreen\n", encoding="utf-16")
    assert sort(colors, examples=[colors.examples, tmp_path / "t.csv", tmp_path / "u.csv"]) == 0
    printed = capsys.readouterr().out
    assert "is red in an earlier source of examples and green in a later one" in printed
    assert "copy.png is the same picture as red/1.png; it is green and no longer red" in printed


def test_an_export_has_the_corrections(colors, tmp_path):
    assert sort(colors) == 0
    (colors.out / "_unknown").mkdir()
    (colors.out / "red" / "p0.png").rename(colors.out / "blue" / "p0.png")
    (colors.out / "red" / "p1.png").rename(colors.out / "_unknown" / "p1.png")
    for again in range(2):
        file = tmp_path / f"{again}.csv"
        assert main(["export", str(colors.out), "--format", "csv", "--out", str(file)]) == 0
        with file.open(newline="") as opened:
            lines = {os.path.basename(row["path"]): row for row in csv.DictReader(opened)}
        assert (lines["p0.png"]["label"], lines["p0.png"]["status"]) == ("blue", "example")
        assert [lines["p1.png"][c] for c in ("label", "folder", "status", "ood")] == [
            "",
            "_unknown",
            "unknown",
            "1.0",
        ]
        assert sort(colors) == 0


def test_a_correction_can_be_corrected_and_is_exported_once(colors, tmp_path):
    assert sort(colors) == 0
    (colors.out / "red" / "p0.png").rename(colors.out / "blue" / "p0.png")
    assert sort(colors) == 0
    lines = table(colors)
    next(line for line in lines if "/p0" in line["path"])["label"] = "green"
    write(colors.out / "predictions.csv", lines)
    assert sort(colors, examples=[colors.out / "predictions.csv"], out=tmp_path / "other") == 0
    assert rows(colors, tmp_path / "other")["pink/p0.png"]["label"] == "green"
    file = tmp_path / "labels.csv"
    assert main(["export", str(colors.out), "--format", "csv", "--out", str(file)]) == 0
    with file.open(newline="") as opened:
        paths = [row["path"] for row in csv.DictReader(opened)]
    assert len(paths) == len(set(paths)) == 28 + 9


def test_labels_that_differ_in_case_only_are_refused(colors, tmp_path, capsys):
    (tmp_path / "t.csv").write_text(f"path,label\n{colors.pictures}/red/0.png,RED\n")
    assert sort(colors, examples=[colors.examples, tmp_path / "t.csv"]) == 2
    assert "'RED' and 'red' differ in upper and lower case only" in capsys.readouterr().err


def test_wrong_names_of_pictures_are_reported_before_anything_is_embedded(colors, monkeypatch):
    from protorect.labeling import classifier

    monkeypatch.setattr(classifier, "embed_pictures", None)
    colors.pictures = colors.root / "nowhere"
    assert sort(colors) == 2
    assert not colors.out.exists()
