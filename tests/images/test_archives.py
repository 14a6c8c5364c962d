"""Listing folders and archives, and reading pictures from them."""

import contextlib
import gzip
import io
import os
import tarfile
import warnings
import zipfile
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from helpers.damage import damaged_files, damages
from helpers.pictures import class_folders, contents
from protorect.errors import DataError
from protorect.images import archives
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
    with pytest.raises(UnreadableError, match="MB to read; the limit is 400 MB, set PROTORECT_"):
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


def zip_of(path, *members):
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "w") as archive:
        for name, data in members:  # warns of names that are there twice
            archive.writestr(name, data)
    return path


def tar_of(path, *members):
    with tarfile.open(path, "w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_a_picture_that_is_twice_in_an_archive_is_an_error(tmp_path, make):
    path = make(tmp_path / "a", ("a/1.png", b"1"), ("b/1.png", b"2"), ("a/1.png", b"3"))
    with pytest.raises(DataError, match=r"holds a/1\.png twice"):
        list_pictures(path, tmp_path)


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_nothing_outside_of_an_archive_is_named_or_written(tmp_path, make):
    names = ("../up.png", "/root.png", "a/../../up.png", "..\\up.png", "a/1.png")
    folder = tmp_path / "in"
    folder.mkdir()
    path = make(folder / "archive", *((name, b"x") for name in names))
    listing = list_pictures(path, folder)
    assert all(p.file == str(path) and not p.path.startswith("/") for p in listing.pictures)
    assert not any(".." in picture.folders for picture in listing.pictures)
    assert os.listdir(tmp_path) == ["in"]
    assert os.listdir(folder) == ["archive"]


def test_a_changed_byte_in_a_stored_picture_is_noticed(tmp_path):
    path = zip_of(tmp_path / "a.zip", ("a/1.png", b"picture"), ("a/2.png", b"other"))
    path.write_bytes(path.read_bytes().replace(b"picture", b"pixture"))
    first, second = list_pictures(path, tmp_path).pictures
    with pytest.raises(UnreadableError, match="damaged inside its archive"):
        first.read()
    assert second.read() == b"other"


def test_a_picture_that_claims_to_be_small_is_not_decompressed_further(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/1.png", bytes(2**22))
    [picture] = list_pictures(path, tmp_path).pictures
    with pytest.raises(UnreadableError):
        replace(picture, unpacked_length=100).read()
    with pytest.raises(UnreadableError, match="the limit is 400 MB"):
        replace(picture, unpacked_length=2**40).read()


def test_a_compressed_tar_that_unpacks_to_far_more_than_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_LARGE", 2**20)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(tar_of(tmp_path / "t", ("a/1.png", bytes(2**23))).read_bytes()))
    with pytest.raises(DataError, match="more than 100 times its size"):
        list_pictures(path, tmp_path)


@pytest.mark.parametrize("flaw", ["name", "version", "empty name"])
def test_a_zip_that_python_cannot_list(tmp_path, flaw):
    path = zip_of(tmp_path / "a.zip", ("ä/1.png", b"x"))
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\1\2")
    if flaw == "name":
        data[data.rindex("ä".encode())] = 0xFF
    elif flaw == "version":
        data[entry + 6] = 99
    else:
        data[entry + 28] = 0
    path.write_bytes(data)
    with contextlib.suppress(DataError):
        assert list_pictures(path, tmp_path).pictures == ()


@damaged_files
@given(st.data())
def test_a_damaged_archive_is_listed_or_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    members = [(f"{name}/{number}.png", b"x" * 50) for name in ("ä", "b") for number in range(2)]
    make = data.draw(st.sampled_from([zip_of, tar_of]))
    content = data.draw(damages(make(folder / "archive", *members).read_bytes()))
    (folder / "archive").write_bytes(content)
    with contextlib.suppress(DataError):
        for picture in list_pictures(folder / "archive", folder).pictures:
            with contextlib.suppress(UnreadableError):
                picture.read()
