"""`protorect sort` of the formats of phones and browsers, and of files that are not pictures."""

import csv
import io
import sys

import pytest
from PIL import Image

from protorect.cli import main

KINDS = {".heic": "HEIF", ".avif": "AVIF", ".jfif": "JPEG", ".jp2": "JPEG2000", "": "WEBP"}


@pytest.fixture
def formats(colors):
    """The pictures of each class in the formats of KINDS, the last without a suffix."""
    heif = pytest.importorskip("pillow_heif")
    for folder in colors.pictures.iterdir():
        for number, (suffix, kind) in enumerate(KINDS.items()):
            source = folder / f"{number}.png"
            image = Image.open(source)
            if kind == "HEIF":
                heif.from_pillow(image).save(source.with_suffix(suffix), quality=90)
            else:
                image.save(source.with_suffix(suffix), kind)
            source.unlink()
    return colors


def sort(colors, *more):
    options = ["--examples", colors.examples, "--out", colors.out, "--network", colors.weights]
    return main(["sort", str(colors.pictures), *map(str, options), *more])


def table(colors, name):
    return list(csv.DictReader((colors.out / name).read_text().splitlines()))


def test_every_format_is_sorted_and_has_a_thumbnail_for_browsers(formats):
    assert sort(formats, "--unknown", "0", "--unsure", "0") == 0
    rows = table(formats, "predictions.csv")
    assert len(rows) == 24
    assert all(row["path"].split("/")[-2] == row["label"] for row in rows)
    thumbnails = list((formats.out / ".protorect").rglob("*.jpg"))
    assert len(thumbnails) == 24 + 9
    assert {Image.open(io.BytesIO(one.read_bytes())).format for one in thumbnails} == {"JPEG"}
    page = (formats.out / "index.html").read_text()
    assert all(one.name in page for one in thumbnails)


def test_skipped_files_are_listed_by_kind(colors, capsys):
    (colors.pictures / "IMG_1.CR3").write_bytes(b"\0\0\0\x18ftypcrx ")
    (colors.pictures / "IMG_2.dng").write_bytes(b"II*\0\x08\0\0\0")
    (colors.pictures / "clip.mp4").write_bytes(b"\0\0\0\x18ftypisom")
    assert sort(colors) == 0
    printed = capsys.readouterr().out
    assert "2 skipped: RAW photographs" in printed
    assert "1 skipped: videos" in printed
    reasons = {row["path"].split("/")[-1]: row["reason"] for row in table(colors, "errors.csv")}
    assert reasons == {
        "IMG_1.CR3": "skipped: RAW photographs are not read",
        "IMG_2.dng": "skipped: RAW photographs are not read",
        "clip.mp4": "skipped: videos are not read",
    }


def test_a_heic_picture_without_its_decoder(formats, monkeypatch, capsys):
    from protorect.images import open as opening

    opening._heif_opener.cache_clear()
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    assert sort(formats) == 1
    assert len(table(formats, "predictions.csv")) == 21
    assert "pip install 'protorect[heic]'" in capsys.readouterr().err
    assert len(table(formats, "errors.csv")) == 3
    monkeypatch.undo()


def test_damaged_pictures_are_reported_and_the_others_sorted(formats):
    broken = {}
    for suffix in KINDS:
        data = next(formats.pictures.rglob(f"*{suffix}" if suffix else "4")).read_bytes()
        for name, part in (("half", data[: len(data) // 2]), ("head", data[:40]), ("empty", b"")):
            broken[f"{name}{suffix or '.webp'}"] = part
    for name, data in broken.items():
        (formats.pictures / name).write_bytes(data)
    assert sort(formats) == 1
    assert len(table(formats, "predictions.csv")) == 24
    reasons = {row["path"].split("/")[-1]: row["reason"] for row in table(formats, "errors.csv")}
    assert set(reasons) == set(broken)
    assert all(reason and "\n" not in reason for reason in reasons.values())
