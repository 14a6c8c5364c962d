"""Small versions of each benchmark in the layouts in which it is distributed."""

import csv
import errno
import os
import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from helpers.pictures import class_folders, encoded, pixels
from protorect.datasets.prepare import prepare
from protorect.datasets.splits import SPLITS, ClassSplit, known_split
from protorect.errors import DataError, OptionError


@pytest.fixture
def out(tmp_path):
    return tmp_path / "packed"


@pytest.fixture
def few(monkeypatch):
    """Reduce a published split to a few classes, which keeps the test folders small."""

    def shrink(name, each=2):
        full = known_split(name)
        small = ClassSplit(*(full[split][:each] for split in SPLITS))
        monkeypatch.setattr(
            "protorect.datasets.catalogue.known_split",
            lambda asked: small if asked == name else known_split(asked),
        )
        return small

    return shrink


def classes(packed):
    return {split: packed.split(split).class_names for split in packed.splits}


def as_packed(split):
    return {name: split[name] for name in SPLITS if split[name]}


# Omniglot


def drawing(position):
    """A black bar on white at one of 20 heights, with one bit per pixel as distributed."""
    white = np.ones((105, 105), bool)
    white[5 + 4 * position : 15 + 4 * position, 20:60] = False
    return Image.fromarray(white)


def make_omniglot(root, split, each=2):
    for number, name in enumerate(sorted(split.names)):
        part = "images_background" if number % 2 else "images_evaluation"
        folder = root / part / name
        folder.mkdir(parents=True)
        for position in range(each):
            data = encoded(drawing(position))
            (folder / f"{number:04}_{position + 1:02}.png").write_bytes(data)
    return root


def zipped(root):
    for part in ("images_background", "images_evaluation"):
        with zipfile.ZipFile(root / f"{part}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted((root / part).rglob("*.png")):
                archive.write(file, file.relative_to(root))
        shutil.rmtree(root / part)


@pytest.mark.parametrize("as_zip", [False, True], ids=["folder", "zip"])
def test_omniglot(tmp_path, out, few, as_zip):
    split = few("omniglot")
    root = make_omniglot(tmp_path / "o", split)
    if as_zip:
        zipped(root)
    packed = prepare("omniglot", root, out)
    assert (packed.size, packed.channels, packed.flip, packed.crop_padding) == (28, 1, False, 0)
    train = packed.split("train")
    assert train.images.shape == (2 * 4 * 2, 28, 28, 1)
    assert train.class_names[:5] == tuple(
        f"{split.train[i // 4]}/rot{90 * (i % 4):03}" for i in range(5)
    )
    np.testing.assert_array_equal(train.labels, np.repeat(np.arange(8), 2))
    first = train.images[0, ..., 0]
    assert first.max() > 240  # the strokes are bright
    assert first.mean() < 40
    assert first[:14].mean() > first[14:].mean()  # upright, the bar is at the top
    for turn in range(4):
        np.testing.assert_array_equal(train.images[2 * turn, ..., 0], np.rot90(first, turn))
    np.testing.assert_allclose(packed.mean, [(train.images / 255).mean()], rtol=1e-12)


def test_an_unreadable_drawing_has_no_rotations(tmp_path, out, few):
    split = few("omniglot")
    root = make_omniglot(tmp_path / "o", split, each=3)
    [bad] = root.glob(f"*/{split.train[0]}/*_02.png")
    bad.write_bytes(b"")
    packed = prepare("omniglot", root, out)
    train = packed.split("train")
    np.testing.assert_array_equal(np.bincount(train.labels), [2] * 4 + [3] * 4)
    for turn in range(4):
        for position, row in ((0, 0), (2, 1)):
            np.testing.assert_array_equal(
                train.images[2 * turn + row], np.rot90(packed_drawing(position), turn)
            )
    with (out / "index.csv").open() as file:
        rows = [line["row"] for line in csv.DictReader(file) if line["split"] == "train"]
    assert rows == ["0", "", "1", "8", "9", "10"]


def packed_drawing(position):
    from protorect.images.decode import decode

    return 255 - decode(encoded(drawing(position)), 28, 1).pixels


def test_omniglot_with_a_part_missing(tmp_path, out, few):
    root = make_omniglot(tmp_path / "o", few("omniglot"))
    shutil.rmtree(root / "images_evaluation")
    with pytest.raises(DataError, match=r"expected .*; found 1 folders \(images_background\)"):
        prepare("omniglot", root, out)
    assert os.listdir(tmp_path) == ["o"]


# CUB


@pytest.mark.parametrize("form", ["folder", "images", "tar", "tgz"])
def test_cub(tmp_path, out, few, form):
    split = few("cub")
    root = tmp_path / "CUB_200_2011"
    class_folders(root / "images", sorted(split.names), suffix=".jpg")
    (root / "classes.txt").write_text("1 001.Black_footed_Albatross\n")
    if form != "images":
        class_folders(root / "segmentations", sorted(split.names))  # must not be taken for birds
    source = root
    if form == "images":
        source = root / "images"
    elif form != "folder":
        source = tmp_path / f"cub.{form}"
        with tarfile.open(source, "w:gz" if form == "tgz" else "w") as archive:
            archive.add(root, root.name)
    packed = prepare("cub", source, out)
    assert classes(packed) == as_packed(split)
    assert packed.split("test").images.shape == (6, 84, 84, 3)
    assert packed.manifest["source"]["split"] == "as published"
    assert (packed.flip, packed.crop_padding) == (True, 8)
    assert sorted(os.listdir(out)) == sorted(
        ["manifest.json", "index.csv"] + [f"{s}{k}.npy" for s in SPLITS for k in ("", "-labels")]
    )


def test_cub_with_classes_missing(tmp_path, out):
    root = class_folders(tmp_path / "c", ["001.Black_footed_Albatross", "oddity"])
    with pytest.raises(DataError, match=r"199 of 200 classes are missing .* Expected: CUB_200"):
        prepare("cub", root, out)


# miniImageNet


def test_mini_imagenet_class_folders(tmp_path, out, few):
    split = few("mini-imagenet")
    for name in SPLITS:
        class_folders(tmp_path / "m" / name, split[name], suffix=".jpg")
    packed = prepare("mini-imagenet", tmp_path / "m", out)
    assert classes(packed) == as_packed(split)
    assert len(packed.split("val").labels) == 6


def make_tables(root, split):
    (root / "images").mkdir(parents=True)
    for name in SPLITS:
        lines = ["filename,label"]
        for label in split[name]:
            for number in range(3):
                file = f"{label}{number:08}.jpg"
                (root / "images" / file).write_bytes(encoded(kind="JPEG"))
                lines.append(f"{file},{label}")
        (root / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return root


def test_mini_imagenet_tables(tmp_path, out, few):
    split = few("mini-imagenet")
    root = make_tables(tmp_path / "m", split)
    (root / "images" / "extra.jpg").write_bytes(encoded(kind="JPEG"))
    (root / "images" / f"{split.test[0]}00000001.jpg").unlink()
    packed = prepare("mini-imagenet", root, out)
    assert classes(packed) == as_packed(split)
    assert [one["reason"] for one in packed.manifest["unreadable"]] == ["in test.csv, not found"]
    assert "images/extra.jpg" in packed.manifest["left_out"]


def test_mini_imagenet_bad_tables(tmp_path, out, few):
    root = make_tables(tmp_path / "m", few("mini-imagenet"))
    (root / "val.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="columns filename,label"):
        prepare("mini-imagenet", root, out)
    (root / "val.csv").unlink()
    with pytest.raises(DataError, match=r"val\.csv is missing"):
        prepare("mini-imagenet", root, out)


def make_caches(root, split, protocol=2):
    root.mkdir()
    seed = 0
    for name in SPLITS:
        data = np.stack([pixels(seed + i, 84, 84) for i in range(3 * len(split[name]))])
        seed += len(data)
        rows = {label: list(range(i, len(data), 2)) for i, label in enumerate(split[name])}
        document = {"image_data": data, "class_dict": rows}
        path = root / f"mini-imagenet-cache-{name}.pkl"
        path.write_bytes(pickle.dumps(document, protocol))
    return root


@pytest.mark.parametrize("protocol", [2, 4])
def test_mini_imagenet_caches(tmp_path, out, few, protocol):
    split = few("mini-imagenet")
    packed = prepare("mini-imagenet", make_caches(tmp_path / "m", split, protocol), out)
    assert classes(packed) == as_packed(split)
    expected = [pixels(row, 84, 84) for row in (0, 2, 4, 1, 3, 5)]
    np.testing.assert_array_equal(packed.split("train").images, expected)


class Malicious:
    def __reduce__(self):
        return (os.system, ("touch executed",))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"image_data": Malicious()}, r"asks for posix\.system"),
        ([1], "it holds a list"),
        ({"images": 1}, "it has images"),
        ({"image_data": np.zeros((2, 84, 84)), "class_dict": {}}, r"float64 \(2, 84, 84\)"),
        (
            {"image_data": np.zeros((2, 84, 84, 3), np.uint8), "class_dict": {"n01": [2]}},
            "rows beyond its 2 pictures",
        ),
        *(
            (
                {"image_data": np.zeros((2, 84, 84, 3), np.uint8), "class_dict": {"n01": rows}},
                r"mini-imagenet-cache-train\.pkl: class n01 should be a list of row numbers",
            )
            for rows in (["cat.jpg"], "cat", None, [[0]], np.zeros(2))
        ),
    ],
    ids=[
        *("malicious", "list", "keys", "shape", "rows"),
        *("text rows", "text", "no rows", "nested rows", "float rows"),
    ],
)
def test_mini_imagenet_bad_caches(tmp_path, out, few, monkeypatch, document, message):
    root = make_caches(tmp_path / "m", few("mini-imagenet"))
    (root / "mini-imagenet-cache-train.pkl").write_bytes(pickle.dumps(document))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        prepare("mini-imagenet", root, out)
    assert os.listdir(tmp_path) == ["m"]


# tieredImageNet


def test_tiered_imagenet_inside_all_of_imagenet(tmp_path, out, few):
    split = few("tiered-imagenet")
    root = class_folders(
        tmp_path / "t" / "train", [*sorted(split.names), "n00000000"], suffix=".jpg"
    )
    packed = prepare("tiered-imagenet", root, out)
    assert classes(packed) == as_packed(split)
    assert "n00000000/0.jpg" in packed.manifest["left_out"]


# CIFAR-FS


def test_cifar_fs_class_folders(tmp_path, out, few):
    split = few("cifar-fs")
    class_folders(tmp_path / "c" / "data", sorted(split.names))
    packed = prepare("cifar-fs", tmp_path / "c", out)
    assert classes(packed) == as_packed(split)
    assert (packed.size, packed.crop_padding) == (32, 4)


def make_cifar(root, split):
    """Write the files as Python 2 pickled them: keys and text are bytes."""
    root.mkdir(parents=True)
    names = sorted(split.names)
    meta = {b"fine_label_names": [name.encode() for name in names]}
    (root / "meta").write_bytes(pickle.dumps(meta, 2))
    for seed, part in enumerate(("train", "test")):
        labels = list(range(len(names))) * 2
        images = np.stack([pixels(100 * seed + i, 32, 32) for i in range(len(labels))])
        data = images.transpose(0, 3, 1, 2).reshape(len(labels), -1)
        (root / part).write_bytes(pickle.dumps({b"data": data, b"fine_labels": labels}, 2))
    return names


@pytest.mark.parametrize("form", ["inside", "itself", "tar", "folder with tar"])
def test_cifar_fs_python_files(tmp_path, out, few, form):
    split = few("cifar-fs")
    root = tmp_path / "c"
    names = make_cifar(root / "cifar-100-python", split)
    source = root / "cifar-100-python" if form == "itself" else root
    if "tar" in form:
        source = tmp_path / "t"
        source.mkdir()
        with tarfile.open(source / "cifar-100-python.tar.gz", "w:gz") as archive:
            archive.add(root / "cifar-100-python", "cifar-100-python")
        source = source / "cifar-100-python.tar.gz" if form == "tar" else source
    packed = prepare("cifar-fs", source, out)
    assert classes(packed) == as_packed(split)
    first = names.index(split.train[0])
    seeds = [first, first + len(names), 100 + first, 100 + first + len(names)]
    expected = [pixels(seed, 32, 32) for seed in seeds]
    np.testing.assert_array_equal(packed.split("train").images[:4], expected)


def test_cifar_fs_bad_python_files(tmp_path, out, few):
    root = tmp_path / "c"
    make_cifar(root, few("cifar-fs"))
    bad = {b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [0, 6]}
    (root / "train").write_bytes(pickle.dumps(bad))
    with pytest.raises(DataError, match="labels should be 0 to 5"):
        prepare("cifar-fs", root, out)
    (root / "train").write_bytes(pickle.dumps({b"data": bad[b"data"], b"fine_labels": [0]}))
    with pytest.raises(DataError, match=r"data should be uint8 \(1, 3072\)"):
        prepare("cifar-fs", root, out)
    (root / "train").write_bytes(pickle.dumps({b"data": Malicious()}))
    with pytest.raises(DataError, match=r"posix\.system"):
        prepare("cifar-fs", root, out)


# Meta-Dataset


@pytest.mark.parametrize(
    "name",
    ["aircraft", "dtd", "quickdraw", "fungi", "vgg-flower", "mscoco", "cu-birds"],
)
def test_meta_dataset_class_folders(tmp_path, out, few, name):
    split = few(f"meta-{name}", each=3)
    class_folders(tmp_path / "m", [one.replace("/", "_") for one in sorted(split.names)])
    assert classes(prepare(f"meta-{name}", tmp_path / "m", out)) == as_packed(split)


def test_meta_dataset_names_with_a_slash(tmp_path, out):
    full = known_split("meta-aircraft")
    folders = [name.replace("/", "-") for name in sorted(full.names)]
    class_folders(tmp_path / "m", folders, each=1)
    packed = prepare("meta-aircraft", tmp_path / "m", out, size=8)
    assert {"F-16A/B", "F/A-18"} <= set(packed.split("train").class_names)


def test_meta_traffic_sign_as_distributed(tmp_path, out):
    root = tmp_path / "GTSRB" / "Final_Training" / "Images"
    class_folders(root, [f"{number:05}" for number in range(43)], each=1, suffix=".ppm")
    packed = prepare("meta-traffic-sign", tmp_path / "GTSRB", out, size=8)
    assert packed.splits == ("test",)
    assert packed.manifest["statistics_of"] == "test"
    test = packed.split("test")
    assert test.class_names[0] == "00.Speed limit (20km/h)"
    np.testing.assert_allclose(packed.mean, (test.images / 255).mean((0, 1, 2)), rtol=1e-12)


def test_meta_omniglot(tmp_path, out, few):
    split = few("meta-omniglot")
    packed = prepare("meta-omniglot", make_omniglot(tmp_path / "o", split), out)
    assert classes(packed) == as_packed(split)
    assert packed.split("train").images.shape == (4, 84, 84, 3)


def test_meta_ilsvrc_needs_a_split(tmp_path, out):
    root = class_folders(tmp_path / "i", ["n01", "n02", "n03"])
    with pytest.raises(OptionError, match=r"give --split FILE\.json"):
        prepare("meta-ilsvrc-2012", root, out)
    split = ClassSplit(("n01",), ("n02",), ("n03",))
    assert classes(prepare("meta-ilsvrc-2012", root, out, split=split)) == as_packed(split)


def test_a_class_folder_that_cannot_be_read_is_not_an_empty_class(tmp_path, out, monkeypatch):
    class_folders(tmp_path / "pictures", ["cat", "dog"])
    real = os.scandir

    def scandir(folder):
        if str(folder).endswith("dog"):
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(DataError, match=r"dog: a folder that cannot be read \(Permission denied\)"):
        prepare("folder", tmp_path / "pictures", out, workers=1)
    assert not out.exists()
