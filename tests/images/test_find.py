"""Finding pictures by folder, pattern, list or file."""

import os

import pytest

from helpers.pictures import class_folders
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.find import find_pictures


def names(found):
    return sorted(os.path.basename(picture.file) for picture in found.pictures)


@pytest.fixture
def photos(tmp_path):
    root = class_folders(tmp_path / "photos", ["a", "b/c"], each=2)
    (root / "notes.txt").write_text("hello")
    return root


def test_a_folder_is_searched_at_any_depth(photos):
    found = find_pictures(photos)
    assert names(found) == ["0.png", "0.png", "1.png", "1.png"]
    assert found.skipped == ((str(photos / "notes.txt"), "documents"),)
    assert all(os.path.isabs(picture.file) and not picture.error for picture in found.pictures)


def test_patterns_files_lists_and_several_sources(photos):
    assert len(find_pictures(f"{photos}/**/0.*").pictures) == 2
    assert names(find_pictures(photos / "a" / "1.png")) == ["1.png"]
    (photos / "list.txt").write_text("a/0.png\n\nb/c/1.png\nnowhere.png\na/0.png\n")
    found = find_pictures(photos / "list.txt")
    assert names(found) == ["0.png", "1.png", "nowhere.png"]
    assert [p.error for p in found.pictures] == ["", "", "No such file or directory"]
    assert len(find_pictures([photos / "a", photos / "a" / "0.png", photos / "b"]).pictures) == 4


def test_missing_pictures_are_an_error(photos):
    with pytest.raises(DataError, match="there is no file or folder .*nowhere; give a folder"):
        find_pictures(photos / "nowhere")
    with pytest.raises(DataError, match=r"no picture matches .*\*\.webp"):
        find_pictures(f"{photos}/*.webp")


def test_pictures_without_a_folder_and_without_files(photos):
    found = find_pictures(photos)
    assert len(found.without(folder=photos / "b").pictures) == 2
    assert found.without(folder=photos).skipped == ()
    assert len(found.without(files=[str(photos / "a" / "0.png")]).pictures) == 3


def test_an_unreadable_folder_is_listed_with_its_error(photos, monkeypatch):
    scandir = os.scandir

    def refusing(folder):
        if str(folder).endswith("c"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    listing = list_pictures(photos, photos)
    errors = {p.path: p.error for p in listing.pictures if p.error}
    assert errors == {"b/c": "a folder that cannot be read (Permission denied)"}
    assert len(listing.pictures) == 3
