"""CUB cropped to its bounding boxes: applied, recognized as applied before, and wrong."""

import csv
import json
import os
import shutil
import tarfile

import numpy as np
import pytest
from PIL import Image

from helpers.pictures import encoded, pixels
from protorect.cli import main
from protorect.datasets import boxes
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import prepare
from protorect.datasets.splits import SPLITS, ClassSplit, known_split
from protorect.embedding.picture_sets import packed_origin
from protorect.errors import DataError, OptionError

FULL = known_split("cub")
SPLIT = ClassSplit(*(FULL[split][:2] for split in SPLITS))
NAMES = sorted(SPLIT.names)
KEYS = [f"{name}/{number}.png" for name in NAMES for number in range(2)]
BOX = (10, 5, 30, 20)  # x, y, width, height


@pytest.fixture(autouse=True)
def few_classes(monkeypatch):
    monkeypatch.setattr("protorect.datasets.catalogue.known_split", lambda _: SPLIT)


def write_lists(root, rows):
    (root / "images.txt").write_text("".join(f"{i} {k}\n" for i, k in enumerate(KEYS, 1)))
    lines = (f"{i} {' '.join(map(str, row))}\n" for i, row in enumerate(rows, 1))
    (root / "bounding_boxes.txt").write_text("".join(lines))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Pictures of two sizes in the official layout, each with a box."""
    root = tmp_path_factory.mktemp("cub") / "CUB_200_2011"
    for seed, key in enumerate(KEYS):
        path = root / "images" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(Image.fromarray(pixels(seed, 40, 50 + seed % 2))))
    write_lists(root, [BOX] * len(KEYS))
    return root


@pytest.fixture
def root(original, tmp_path):
    return shutil.copytree(original, tmp_path / "CUB_200_2011")


def packed_rows(packed):
    with (packed.path / "index.csv").open() as file:
        lines = list(csv.DictReader(file))
    return [(line, packed.split(line["split"]).images[int(line["row"])]) for line in lines]


def cut(root, key, box):
    x, y, width, height = box
    image = Image.open(root / "images" / key)
    corners = (x, y, x + width, y + height)
    return np.asarray(image.resize((8, 8), Image.Resampling.BICUBIC, corners, reducing_gap=3.0))


@pytest.mark.parametrize("form", ["folder", "tar", "tgz"])
def test_pictures_are_cut_to_their_boxes(root, tmp_path, form):
    source = root
    if form != "folder":
        source = tmp_path / f"cub.{form}"
        with tarfile.open(source, "w:gz" if form == "tgz" else "w") as archive:
            archive.add(root, root.name)
    packed = prepare("cub", source, tmp_path / "packed", size=8, workers=1)
    assert packed.manifest["crop"] == "boxes"
    assert packed.manifest["remarks"] == []
    assert packed_origin(packed, "test")["crop"] == "boxes"
    for line, row in packed_rows(packed):
        assert line["box"] == "10 5 40 25"
        key = "/".join(line["path"].split("/")[-2:])
        np.testing.assert_array_equal(row, cut(root, key, BOX))


def test_whole_pictures_on_request(root, tmp_path):
    packed = prepare("cub", root, tmp_path / "packed", size=8, crop="none", workers=1)
    (root / "bounding_boxes.txt").unlink()
    without = prepare("cub", root, tmp_path / "without", size=8, workers=1)
    birds = prepare("meta-cu-birds", root, tmp_path / "birds", size=8, workers=1)
    for one in (packed, without, birds):
        assert one.manifest["crop"] == "none"
        assert one.split("test").digest == packed.split("test").digest
        assert all(line["box"] == "" for line, _ in packed_rows(one))
    assert (
        "no bounding_boxes.txt, so the pictures are packed whole" in without.manifest["remarks"][0]
    )
    assert packed.manifest["remarks"] == birds.manifest["remarks"] == []


def test_a_box_that_reaches_beyond_its_picture_is_clipped(root, tmp_path):
    write_lists(root, [(-2, 5, 30, 20.5), (40, 30, 10.5, 12), *[BOX] * (len(KEYS) - 2)])
    packed = prepare("cub", root, tmp_path / "packed", size=8, workers=1)
    assert packed.manifest["remarks"] == [
        "2 boxes reach beyond their picture and were clipped at its border."
    ]
    lines = {line["path"].removeprefix("images/"): line["box"] for line, _ in packed_rows(packed)}
    assert lines[KEYS[0]] == "0 5 28 25.5"
    assert lines[KEYS[1]] == "40 30 50.5 40"  # this picture has 51 x 40 pixels


def test_a_split_of_some_classes_needs_only_their_boxes(root, tmp_path):
    split = ClassSplit((NAMES[0],), (), (NAMES[1],))
    packed = prepare("cub", root, tmp_path / "packed", size=8, split=split, workers=1)
    assert packed.manifest["crop"] == "boxes"


def make_square(root, side):
    for path in (root / "images").rglob("*.png"):
        Image.open(path).resize((side, side)).save(path)


@pytest.mark.parametrize("crop", ["auto", "boxes"])
def test_pictures_that_were_cut_before_are_not_cut_again(root, tmp_path, crop):
    make_square(root, 16)
    write_lists(root, [(12, 9, 30, 20)] * len(KEYS))
    packed = prepare("cub", root, tmp_path / "packed", size=16, crop=crop, workers=1)
    assert packed.manifest["crop"] == "before"
    [remark] = packed.manifest["remarks"]
    assert "all pictures have 16 x 16 pixels, and 12 of 12 boxes" in remark
    for line, row in packed_rows(packed):
        np.testing.assert_array_equal(row, np.asarray(Image.open(root / line["path"])))


def test_many_pictures_of_one_size_are_not_the_original_ones(root, tmp_path, monkeypatch):
    """Boxes of photographs may fit into larger squares, where they are of something else."""
    make_square(root, 64)
    assert prepare("cub", root, tmp_path / "a", size=8, workers=1).manifest["crop"] == "boxes"
    monkeypatch.setattr(boxes, "_MANY", len(KEYS))
    assert prepare("cub", root, tmp_path / "b", size=8, workers=1).manifest["crop"] == "before"


def test_an_unreadable_picture_is_reported(root, tmp_path):
    (root / "images" / KEYS[0]).write_bytes(b"no picture")
    packed = prepare("cub", root, tmp_path / "packed", size=8, workers=1)
    assert [one["path"] for one in packed.manifest["unreadable"]] == [f"images/{KEYS[0]}"]


def with_box(*box):
    return lambda root: write_lists(root, [box, *[BOX] * (len(KEYS) - 1)])


def change(name, old, new):
    def edit(root):
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new))

    return edit


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (with_box(100, 100, 20, 20), f"box of {KEYS[0]}, 100 100 20 20, is mostly outside of its"),
        (with_box(30, 30, 60, 60), r"is mostly outside of its picture of 50 x 40 pixels; give"),
        (with_box(5, 5, 0, 10), "5 5 0 10, should be four numbers, .* with a size above zero"),
        (with_box(5, 5, 10, -3), "with a size above zero"),
        (with_box(1e18, 5, 10, 10), "with a size above zero"),
        (with_box("nan", 5, 10, 10), "nan 5 10 10, should be four numbers"),
        (with_box(5, 5, "inf", 10), "5 5 inf 10, should be four numbers"),
        (with_box("five", 5, 10, 10), "five 5 10 10, should be four numbers"),
        (with_box(5, 5, 10), r"bounding_boxes.txt, line 1: '1 5 5 10' should be ID X Y WIDTH"),
        (change("bounding_boxes.txt", "12 10 5 30 20\n", ""), "images.txt has a picture 12 and b"),
        (change("images.txt", f"12 {KEYS[-1]}\n", ""), "bounding_boxes.txt has a picture 12 and"),
        (change("images.txt", "12 ", "11 "), "line 12: .* should be ID PATH, each ID a number"),
        (change("images.txt", "12 ", "x "), "line 12: .* should be ID PATH"),
        (change("images.txt", KEYS[-1], KEYS[0]), f"images.txt has {KEYS[0]} twice"),
        (change("images.txt", KEYS[-1], NAMES[0] + "/a.png"), f"{KEYS[-1]} is not in images.txt"),
        (lambda root: (root / "images" / KEYS[0]).unlink(), f"has {KEYS[0]}, which is not there"),
        (lambda root: (root / "images.txt").unlink(), "has no images.txt"),
        (lambda root: (root / "images.txt").write_bytes(b"1 \xff\n"), "images.txt cannot be read"),
        (lambda root: write_lists(root, [(900, 900, 9, 9)] * 12), r"\(as are 11 more\)"),
    ],
)
def test_bad_boxes_are_one_sentence_and_leave_nothing(root, tmp_path, capsys, damage, message):
    damage(root)
    with pytest.raises(DataError, match=message):
        prepare("cub", root, tmp_path / "packed", workers=1)
    assert main(["prepare", "cub", str(root), "--out", str(tmp_path / "packed")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert os.listdir(tmp_path) == ["CUB_200_2011"]
    whole = ["--crop", "none", "--size", "8", "--workers", "1"]
    assert main(["prepare", "cub", str(root), "--out", str(tmp_path / "packed"), *whole]) == 0


def test_boxes_that_are_not_there(root, tmp_path):
    (root / "bounding_boxes.txt").unlink()
    with pytest.raises(DataError, match=r"has no bounding_boxes\.txt.* or give --crop none"):
        prepare("cub", root, tmp_path / "packed", crop="boxes")
    with pytest.raises(OptionError, match="folder has no bounding boxes"):
        prepare("folder", root / "images", tmp_path / "packed", crop="boxes")
    with pytest.raises(OptionError, match="crop"):
        prepare("cub", root, tmp_path / "packed", crop="box")


def test_a_manifest_with_another_crop_is_damaged(root, tmp_path):
    packed = prepare("cub", root, tmp_path / "packed", size=8, workers=1)
    manifest = packed.path / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"crop": "head"}))
    with pytest.raises(DataError, match="crop"):
        PackedDataset.open(packed.path)
