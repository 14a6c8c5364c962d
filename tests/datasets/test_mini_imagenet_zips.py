"""miniImageNet as train.zip, val.zip and test.zip, whole and not."""

import os
import shutil
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

from helpers.pictures import encoded, pixels
from protorect.cli import main
from protorect.datasets.layouts import mini_imagenet
from protorect.datasets.prepare import prepare
from protorect.datasets.splits import SPLITS, known_split
from protorect.errors import DataError

SPLIT = known_split("mini-imagenet")
FIRST = SPLIT.train[0]
PICTURE = f"{FIRST}/{FIRST}00000001.jpg"


def picture(seed, side=84):
    return encoded(Image.fromarray(pixels(seed, side, side)), "JPEG")


def add(path, name, data):
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, data)  # warns of a name that is there already


def rewrite(path, change):
    """Replace the members of a zip by those of `change(name, data)`, a name and data or None."""
    with zipfile.ZipFile(path) as archive:
        members = [(one.filename, archive.read(one)) for one in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            if changed := change(name, data):
                archive.writestr(*changed)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The three zips with two pictures of each class."""
    root = tmp_path_factory.mktemp("zips")
    for seed, split in enumerate(SPLITS):
        with zipfile.ZipFile(root / f"{split}.zip", "w") as archive:
            for number, name in enumerate(SPLIT[split]):
                for one in range(2):
                    data = picture(1000 * seed + 2 * number + one)
                    archive.writestr(f"{name}/{name}{one:08}.jpg", data)
    return root


@pytest.fixture
def zips(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "zips")


def test_the_zips_give_the_arrays_of_the_class_folders(zips, tmp_path):
    add(zips / "train.zip", "readme.md", b"hello")
    for split in SPLITS:
        with zipfile.ZipFile(zips / f"{split}.zip") as archive:
            archive.extractall(tmp_path / "folders")
    from_zips = prepare("mini-imagenet", zips, tmp_path / "z", workers=1)
    from_folders = prepare("mini-imagenet", tmp_path / "folders", tmp_path / "f", workers=1)
    for split in SPLITS:
        assert from_zips.split(split).class_names == SPLIT[split]
        images = from_zips.split(split).images
        np.testing.assert_array_equal(images, from_folders.split(split).images)
    assert from_zips.manifest["left_out"] == ["train.zip/readme.md"]
    said = "every class has 2 pictures; miniImageNet has 600 of each class."
    assert from_zips.manifest["remarks"] == [said]


def test_nothing_is_said_of_whole_zips(zips, tmp_path, monkeypatch):
    monkeypatch.setattr(mini_imagenet, "PER_CLASS", 2)
    packed = prepare("mini-imagenet", zips, tmp_path / "packed", workers=1, size=8)
    assert packed.manifest["remarks"] == []


def test_a_picture_under_two_names_is_packed_and_said(zips, tmp_path):
    other = f"{SPLIT.val[0]}/{SPLIT.val[0]}00000000.jpg"
    with zipfile.ZipFile(zips / "train.zip") as archive:
        data = archive.read(PICTURE)
    rewrite(zips / "val.zip", lambda name, own: (name, data if name == other else own))
    packed = prepare("mini-imagenet", zips, tmp_path / "packed", workers=1, size=8)
    assert len(packed.split("val").labels) == 32
    said = f"val.zip/{other} is the same picture as train.zip/{PICTURE}."
    assert said in packed.manifest["remarks"]


def test_an_own_split_may_divide_the_classes_otherwise(zips, tmp_path):
    packed = prepare(
        "mini-imagenet", zips, tmp_path / "p", split=(0.5, 0.2, 0.3), workers=1, size=8
    )
    assert [len(packed.split(split).class_names) for split in SPLITS] == [50, 20, 30]


def missing_zip(zips):
    (zips / "val.zip").unlink()


def missing_picture(zips):
    rewrite(zips / "train.zip", lambda name, data: None if name == PICTURE else (name, data))


def missing_class(zips):
    rewrite(zips / "train.zip", lambda n, data: None if n.startswith(FIRST) else (n, data))


def one_more(zips):
    add(zips / "train.zip", f"{FIRST}/{FIRST}00000009.jpg", picture(5))


def named_otherwise(zips):
    new = f"{FIRST}/bird.jpg"
    rewrite(zips / "train.zip", lambda name, data: (new if name == PICTURE else name, data))


def another_suffix(zips):
    new = PICTURE.replace(".jpg", ".txt")
    rewrite(zips / "train.zip", lambda name, data: (new if name == PICTURE else name, data))


def another_size(zips):
    small = picture(7, side=83)
    rewrite(zips / "train.zip", lambda name, data: (name, small if name == PICTURE else data))


def twice_in_one(zips):
    add(zips / "train.zip", PICTURE, picture(0))


def twice_in_two(zips):
    add(zips / "test.zip", PICTURE, picture(0))


def cut_off(zips):
    data = (zips / "test.zip").read_bytes()
    (zips / "test.zip").write_bytes(data[: len(data) // 2])


def not_a_zip(zips):
    (zips / "test.zip").write_bytes(b"<html>404</html>")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (missing_zip, r"val\.zip is missing"),
        (missing_picture, f"of class {FIRST} is 1, that of the others 2; miniImageNet has 600"),
        (missing_class, f"1 of 100 classes are missing .{FIRST}"),
        (one_more, f"of class {FIRST} is 3, that of the others 2"),
        (named_otherwise, f"{FIRST}/bird.jpg should have a name that begins with its class"),
        (another_suffix, f"of class {FIRST} is 1"),
        (another_size, r"00000001\.jpg has 83 x 83 pixels; .* have 84 x 84"),
        (twice_in_one, rf"train\.zip holds {PICTURE} twice"),
        (twice_in_two, rf"test\.zip: class {FIRST} belongs to train\.zip"),
        (cut_off, r"test\.zip is not a folder and not a whole archive"),
        (not_a_zip, r"test\.zip is not a folder and not a whole archive"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_bad_zips_are_one_sentence_and_leave_nothing(zips, tmp_path, capsys, damage, message):
    damage(zips)
    with pytest.raises(DataError, match=message):
        prepare("mini-imagenet", zips, tmp_path / "packed", workers=1, size=8)
    assert main(["prepare", "mini-imagenet", str(zips), "--out", str(tmp_path / "packed")]) == 2
    assert capsys.readouterr().err.count("\n") <= 2  # the sentence, perhaps after a progress line
    assert os.listdir(tmp_path) == ["zips"]
