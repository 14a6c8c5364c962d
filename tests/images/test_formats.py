"""Recognizing pictures by their content, whatever they are called."""

import tarfile
import zipfile

import pytest
from PIL import Image

from helpers.pictures import encoded
from protorect.errors import DataError
from protorect.images.archives import list_pictures
from protorect.images.find import find_pictures
from protorect.images.formats import kind_of_file, picture_format

FORMATS = ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "AVIF", "JPEG2000"]
NOT_PICTURES = {
    "text": b"This is text.",
    "PDF": b"%PDF-1.7\n",
    "video": b"\0\0\0\x18ftypisom\0\0\0\0isommp42",
    "EPS": b"%!PS-Adobe-3.0 EPSF-3.0",
    "Canon": b"II*\0\x10\0\0\0CR\x02\0",
    "BM": b"BM is the beginning of this text, too",
    "P1": b"P1 is the name of a project",
    "wave": b"RIFF\0\0\0\0WAVEfmt ",
    "nothing": b"",
}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_recognized_by_its_content(kind):
    assert picture_format(encoded(kind=kind)[:64]) == kind


def test_brands_of_heif_files():
    assert picture_format(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic") == "HEIF"
    assert picture_format(b"\0\0\0\x1cftypmif1\0\0\0\0mif1heicmiaf") == "HEIF"
    assert picture_format(b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf") == "AVIF"
    assert picture_format(b"\0\0\0\x10ftypisom\0\0\0\0heic") is None  # behind the list of brands


@pytest.mark.parametrize("head", NOT_PICTURES.values(), ids=NOT_PICTURES)
def test_other_files_are_not_pictures(head):
    assert picture_format(head) is None


@pytest.fixture
def mixed(tmp_path):
    root = tmp_path / "mixed"
    (root / "a").mkdir(parents=True)
    (root / "a" / "IMG_0001").write_bytes(encoded(kind="JPEG"))
    (root / "a" / "download.dat").write_bytes(encoded(kind="WEBP"))
    (root / "a" / "wrong.jpg").write_bytes(encoded(kind="PNG"))
    (root / "a" / "photo.nef").write_bytes(encoded(kind="TIFF"))
    (root / "a" / "photo.MOV").write_bytes(NOT_PICTURES["video"])
    (root / "a" / ".hidden").write_bytes(encoded())
    (root / "a" / "table.csv").write_text("a,b")
    return root


PICTURES = ["IMG_0001", "download.dat", "wrong.jpg"]


def test_pictures_in_a_folder_and_the_kinds_of_the_others(mixed):
    found = find_pictures(mixed)
    assert sorted(picture.path.split("/")[-1] for picture in found.pictures) == PICTURES
    kinds = {file.path.split("/")[-1]: file.kind for file in found.skipped}
    assert kinds == {
        "photo.nef": "RAW photographs",
        "photo.MOV": "videos",
        ".hidden": "other files",
        "table.csv": "documents",
    }
    assert len(find_pictures(f"{mixed}/a/*").pictures) == 3
    assert len(find_pictures(mixed / "a" / "IMG_0001").pictures) == 1


def test_pictures_in_archives(mixed, tmp_path):
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in mixed.rglob("*.*"):
            archive.write(file, file.relative_to(mixed))
        archive.write(mixed / "a" / "IMG_0001", "a/IMG_0001")
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        archive.add(mixed / "a", "a")
    for name in ("m.zip", "m.tar"):
        pictures = list_pictures(tmp_path / name, tmp_path).pictures
        assert [picture.path.split("/")[-1] for picture in pictures] == PICTURES
        for picture in pictures:
            assert picture_format(picture.read()[:64])


def test_a_video_is_not_taken_for_a_list_of_pictures(mixed):
    with pytest.raises(DataError, match=r"photo\.MOV cannot be sorted: videos are not read\."):
        find_pictures(mixed / "a" / "photo.MOV")


def test_kinds_of_files():
    assert kind_of_file("x/IMG.CR3") == "RAW photographs"
    assert kind_of_file("notes") == "other files"
    assert kind_of_file("drawing.psd") == "pictures in other formats"


def test_a_deflated_head_is_long_enough(tmp_path):
    picture = Image.effect_noise((64, 64), 90)  # which deflate cannot make shorter
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/x", encoded(picture, "AVIF", quality=100))
    [one] = list_pictures(tmp_path / "m.zip", tmp_path).pictures
    with one.content() as data:
        assert len(data) == one.unpacked_length
