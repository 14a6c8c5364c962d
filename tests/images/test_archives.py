"""Listing folders and archives, and reading pictures from them."""

import os
import tarfile
import zipfile

import pytest

from helpers.pictures import class_folders, contents
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.stored import StoredPicture, UnreadableError


@pytest.fixture
def root(tmp_path):
    root = class_folders(tmp_path / "birds", ["hen", "owl"], each=2)
    (root / "LICENSE").write_text("free")
    (root / ".DS_Store").write_text("x")
    (root / "hen" / "._0.png").write_text("x")
    (root / "empty").mkdir()
    return root


def archived(root, kind):
    path = root.parent / f"birds.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(root.rglob("*")):
                method = zipfile.ZIP_STORED if file.name == "0.png" else zipfile.ZIP_DEFLATED
                archive.write(file, file.relative_to(root.parent), method)
    else:
        mode = {"tar": "w", "tgz": "w:gz", "tar.bz2": "w:bz2", "tar.xz": "w:xz"}[kind]
        with tarfile.open(path, mode) as archive:
            archive.add(root, root.name)
    return path


@pytest.mark.parametrize("kind", ["folder", "zip", "tar", "tgz", "tar.bz2", "tar.xz"])
def test_folders_and_archives_list_and_read_the_same(root, kind, tmp_path):
    listing = list_pictures(root if kind == "folder" else archived(root, kind), tmp_path)
    files = {name: data for name, data in contents(root).items() if name[-5:] in ("0.png", "1.png")}
    files.pop("hen/._0.png")
    paths = ["hen/0.png", "hen/1.png", "owl/0.png", "owl/1.png"]
    assert [picture.path for picture in listing.pictures] == paths
    assert {p.path: p.read() for p in listing.pictures} == {p: files[p] for p in paths}
    assert {"LICENSE", ".DS_Store", "hen/._0.png"} <= set(listing.other_files)
    assert {"hen", "owl", "empty"} <= set(listing.folders)


def test_a_name_that_is_not_utf8_is_read_and_printable(root, tmp_path):
    name = os.fsencode(root / "hen") + b"/caf\xe9.png"
    with open(name, "wb") as file:
        file.write(b"bytes")
    by_path = {p.path: p for p in list_pictures(root, tmp_path).pictures}
    picture = by_path["hen/caf\\xe9.png"]
    assert picture.read() == b"bytes"
    picture.path.encode("utf-8")


def test_links(root, tmp_path):
    (root / "hen" / "up").symlink_to(root)
    (root / "hen" / "self.png").symlink_to("self.png")
    (root / "hen" / "gone.png").symlink_to("nowhere.png")
    (root / "also").symlink_to(root / "owl")
    listing = list_pictures(root, tmp_path)
    errors = {p.path: p.error for p in listing.pictures if p.error}
    assert set(errors) == {"hen/up", "hen/self.png", "hen/gone.png"}
    assert "link back" in errors["hen/up"]
    assert "also/0.png" in {p.path for p in listing.pictures}


def test_a_pipe_is_not_read(root, tmp_path):
    os.mkfifo(root / "hen" / "pipe.png")
    [pipe] = [p for p in list_pictures(root, tmp_path).pictures if p.path == "hen/pipe.png"]
    with pytest.raises(UnreadableError, match="not a regular file"):
        pipe.read()


def test_a_truncated_tar_member_is_unreadable(root, tmp_path):
    path = archived(root, "tar")
    last = max(list_pictures(path, tmp_path).pictures, key=lambda picture: picture.offset)
    os.truncate(path, last.offset + 10)
    with pytest.raises(UnreadableError, match="shorter"):
        last.read()


def test_a_damaged_zip_member_is_unreadable(root, tmp_path):
    path = archived(root, "zip")
    data = bytearray(path.read_bytes())
    [picture] = [p for p in list_pictures(path, tmp_path).pictures if p.path == "hen/1.png"]
    start = picture.offset + 30 + len("birds/hen/1.png")
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)
    with pytest.raises(UnreadableError):
        picture.read()


def test_an_enormous_file_is_not_read(tmp_path):
    path = tmp_path / "big.png"
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(UnreadableError, match="more than 512 MiB"):
        StoredPicture("big.png", str(path), 2**40).read()


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", b"\x1f\x8b broken", b"PK\x03\x04 broken"],
    ids=["empty", "text", "gzip", "zip"],
)
def test_a_file_that_is_not_an_archive(tmp_path, data):
    path = tmp_path / "x.tar"
    path.write_bytes(data)
    with pytest.raises(DataError, match="not a folder and not a whole archive"):
        list_pictures(path, tmp_path)


def test_a_truncated_compressed_tar(root, tmp_path):
    path = archived(root, "tgz")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="not a whole archive"):
        list_pictures(path, tmp_path)


def test_a_missing_root(tmp_path):
    with pytest.raises(DataError, match="there is no file or folder"):
        list_pictures(tmp_path / "absent", tmp_path)
