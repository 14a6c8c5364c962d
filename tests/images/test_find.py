"""Pictures are found wherever they are named, and examples say their class."""

import os

import pytest

from helpers.pictures import class_folders
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.find import find_pictures
from protorect.labeling.examples import find_examples


def names(pile):
    return sorted(os.path.basename(picture.file) for picture in pile.pictures)


@pytest.fixture
def photos(tmp_path):
    root = class_folders(tmp_path / "photos", ["a", "b/c"], each=2)
    (root / "notes.txt").write_text("hello")
    return root


def test_a_folder_is_searched_at_any_depth(photos):
    pile = find_pictures(photos)
    assert names(pile) == ["0.png", "0.png", "1.png", "1.png"]
    assert pile.other_files == 1
    assert all(os.path.isabs(picture.file) and not picture.error for picture in pile.pictures)


def test_a_pattern_a_picture_a_list_and_several(photos):
    assert len(find_pictures(f"{photos}/**/0.*").pictures) == 2
    assert names(find_pictures(photos / "a" / "1.png")) == ["1.png"]
    (photos / "list.txt").write_text("a/0.png\n\nb/c/1.png\nnowhere.png\na/0.png\n")
    pile = find_pictures(photos / "list.txt")
    assert names(pile) == ["0.png", "1.png", "nowhere.png"]
    assert [p.error for p in pile.pictures] == ["", "", "No such file or directory"]
    assert len(find_pictures([photos / "a", photos / "a" / "0.png", photos / "b"]).pictures) == 4


def test_what_is_not_there_is_said(photos):
    with pytest.raises(DataError, match="there is no file or folder .*nowhere; give a folder"):
        find_pictures(photos / "nowhere")
    with pytest.raises(DataError, match=r"no picture matches .*\*\.webp"):
        find_pictures(f"{photos}/*.webp")


def test_a_pile_without_the_output_and_the_examples(photos):
    pile = find_pictures(photos)
    assert len(pile.without(folder=photos / "b").pictures) == 2
    assert len(pile.without(files=[str(photos / "a" / "0.png")]).pictures) == 3


def test_a_folder_that_cannot_be_read_is_a_problem_of_its_own(photos, monkeypatch):
    scandir = os.scandir

    def refusing(folder):
        if str(folder).endswith("c"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    listing = list_pictures(photos, photos)
    problems = {p.path: p.error for p in listing.pictures if p.error}
    assert problems == {"b/c": "a folder that cannot be read (Permission denied)"}
    assert len(listing.pictures) == 3


def test_examples_in_folders_and_in_a_table(photos):
    found = find_examples(photos)
    assert found.classes == ("a", "b")
    assert found.labels == ("a", "a", "b", "b")
    table = photos / "examples.csv"
    table.write_text("probability,path,label\n0.5,a/0.png,first\n1,b/c/0.png, second \n\n")
    assert find_examples(table).labels == ("first", "second")
    table.write_text("a/0.png,first\nb/c/0.png,second\n")
    assert find_examples(table).classes == ("first", "second")
    by_label = {"x": [photos / "a" / "0.png"], "y": [photos / "a" / "1.png"]}
    assert find_examples(by_label).labels == ("x", "y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a/0.png,x\n", "one class only, 'x'; give at least two"),
        ("", "no class; give at least two"),
        ("a/0.png,x\nnowhere.png,y\n", r"row 2: nowhere.png: No such file"),
        ("a/0.png,x\nb/c/0.png\n", r"row 2: 'b/c/0.png' is not path,label"),
        ("path,label\na/0.png,\n", r"row 2: a/0.png has no label"),
    ],
)
def test_bad_tables_are_refused(photos, text, message):
    (photos / "examples.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        find_examples(photos / "examples.csv")


def test_bad_folders_of_examples_are_refused(photos, tmp_path):
    with pytest.raises(DataError, match="there are no examples at .*nowhere"):
        find_examples(tmp_path / "nowhere")
    (photos / "loose.png").write_bytes((photos / "a" / "0.png").read_bytes())
    with pytest.raises(DataError, match="loose.png lies in .* itself, in no class"):
        find_examples(photos)
