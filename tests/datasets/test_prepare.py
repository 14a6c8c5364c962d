"""Packing folders: the packed arrays, the errors, and what interrupted commands leave."""

import csv
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from PIL import Image

from helpers.pictures import class_folders, contents, encoded
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import prepare
from protorect.datasets.splits import ClassSplit
from protorect.errors import DataError, OptionError
from protorect.images.decode import decode

NAMES = ["ant", "bee", "cat", "dog", "eel"]


@pytest.fixture
def root(tmp_path):
    return class_folders(tmp_path / "root", NAMES, each=4)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "deep" / "packed"


def index(packed):
    with (packed.path / "index.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_index_names_the_row_of_every_picture(root, out):
    packed = prepare("folder", root, out, size=16, split=(0.4, 0.2, 0.4))
    assert packed.splits == ("train", "val", "test")
    lines = index(packed)
    assert len(lines) == 20
    for line in lines:
        split = packed.split(line["split"])
        data = (root / line["path"]).read_bytes()
        row = int(line["row"])
        np.testing.assert_array_equal(split.images[row], decode(data, 16, 3).pixels)
        assert split.class_names[split.labels[row]] == line["class"]
        assert (line["width"], line["height"], line["bytes"]) == ("50", "40", str(len(data)))
    names = [name for split in packed.splits for name in packed.split(split).class_names]
    assert sorted(names) == NAMES


@pytest.mark.parametrize("place", ["", "train"])
def test_hidden_folders_are_no_classes(tmp_path, out, place):
    for split, names in {"train": NAMES[:3], "test": NAMES[3:]}.items():
        class_folders(tmp_path / "root" / split, names, each=2)
    for name in (".ipynb_checkpoints", "__MACOSX"):
        (tmp_path / "root" / place / name).mkdir()
    packed = prepare("folder", tmp_path / "root", out, size=16, workers=1)
    assert packed.split("train").class_names == tuple(NAMES[:3])


def test_means_are_of_the_training_pictures(root, out):
    packed = prepare("folder", root, out, size=16)
    train = packed.split("train").images / 255.0
    np.testing.assert_allclose(packed.mean, train.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(packed.std, train.std((0, 1, 2)), rtol=1e-9)
    assert packed.manifest["statistics_of"] == "train"


def test_the_result_does_not_depend_on_the_number_of_workers(root, tmp_path):
    (root / "ant" / "bad.png").write_bytes(b"text")
    options = {"size": 16, "seed": 2}
    prepare("folder", root, tmp_path / "a", workers=1, **options)
    prepare("folder", root, tmp_path / "b", workers=1, **options)
    prepare("folder", root, tmp_path / "c", workers=2, **options)
    first = contents(tmp_path / "a")
    assert set(first) == {
        "manifest.json",
        "index.csv",
        *(f"{s}{kind}.npy" for s in ("train", "val", "test") for kind in ("", "-labels")),
    }
    assert first == contents(tmp_path / "b") == contents(tmp_path / "c")


def test_a_split_by_class_names(root, out):
    split = ClassSplit(("dog",), (), ("ant", "eel"))
    packed = prepare("folder", root, out, size=8, split=split)
    assert packed.splits == ("train", "test")
    assert packed.split("test").class_names == ("ant", "eel")
    assert "bee/ (4 pictures, not in the split)" in packed.manifest["left_out"]


def test_folders_called_train_val_and_test_define_the_split(tmp_path, out):
    root = class_folders(tmp_path / "r", ["train/ant", "train/bee", "val/cat", "test/dog"])
    packed = prepare("folder", root, out, size=8)
    assert packed.split("train").class_names == ("ant", "bee")
    assert packed.split("test").class_names == ("dog",)


def test_a_class_in_two_split_folders_is_an_error(tmp_path, out):
    root = class_folders(tmp_path / "r", ["train/ant", "test/ant"])
    with pytest.raises(DataError, match="class ant is in .* and in another split"):
        prepare("folder", root, out)


def test_unreadable_pictures_are_reported_and_have_no_row(root, out):
    (root / "ant" / "00-zero.jpg").touch()
    (root / "bee" / "text.jpg").write_text("hello")
    (root / "cat" / "1b-cut.jpg").write_bytes(encoded(kind="JPEG")[:-300])
    (root / "dog" / "loop").symlink_to(root)
    (root / "eel" / "notes.txt").write_text("no picture")
    packed = prepare("folder", root, out, size=16, split=(1, 0, 0))
    bad = {one["path"]: one["reason"] for one in packed.manifest["unreadable"]}
    assert bad == {
        "ant/00-zero.jpg": "empty file",
        "bee/text.jpg": "not a picture in a format read here",
        "cat/1b-cut.jpg": "truncated",
        "dog/loop": "a link back to a folder it is in",
    }
    assert packed.manifest["left_out"] == ["eel/notes.txt"]
    train = packed.split("train")
    np.testing.assert_array_equal(train.labels, np.repeat(np.arange(5), 4))
    good = [line for line in index(packed) if not line["problem"]]
    assert [int(line["row"]) for line in good] == list(range(20))
    for row, line in enumerate(good):
        expected = decode((root / line["path"]).read_bytes(), 16, 3).pixels
        np.testing.assert_array_equal(train.images[row], expected)
    np.testing.assert_allclose(packed.mean, (train.images / 255).mean((0, 1, 2)), rtol=1e-12)


def refused(match, name, root, out, error=DataError, **options):
    with pytest.raises(error, match=match) as caught:
        prepare(name, root, out, **options)
    assert "\n" not in str(caught.value)
    assert not out.exists()
    assert not out.parent.exists() or not os.listdir(out.parent)


def test_an_empty_class(root, out):
    (root / "fox").mkdir()
    refused("class fox has no picture", "folder", root, out)


def test_a_class_of_unreadable_pictures(root, out):
    (root / "fox").mkdir()
    (root / "fox" / "a.jpg").touch()
    refused("class fox has no readable picture .1 unreadable: fox/a.jpg", "folder", root, out)


def test_one_class(tmp_path, out):
    root = class_folders(tmp_path / "r", ["ant"])
    refused("one class, ant; .* at least two", "folder", root, out, split=(1.0, 0.0, 0.0))


def test_no_class(tmp_path, out):
    (tmp_path / "r").mkdir()
    refused("Found: an empty folder", "folder", tmp_path / "r", out)
    (tmp_path / "r" / "a.png").write_bytes(encoded())
    refused(r"Found: 1 files and no folder \(a.png\)", "folder", tmp_path / "r", out)


def test_too_few_classes_for_three_splits(tmp_path, out):
    root = class_folders(tmp_path / "r", ["ant", "bee"])
    refused("cannot be divided into 3 splits", "folder", root, out)


def test_a_split_with_a_missing_class(root, out):
    split = ClassSplit(("ant", "gnu"), (), ("bee",))
    refused(r"1 of 3 classes are missing \(gnu\)", "folder", root, out, split=split)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is 0; it must be a whole number in 8 .. 1024 or None"),
        ({"size": 10**6}, "size is 1000000; it must"),
        ({"size": 84.5}, "size is 84.5; it must be a whole number"),
        ({"channels": 2}, "unknown channels '2'. Known: 1, 3."),
        ({"seed": -1}, "seed is -1; it must be a whole number from 0 up"),
        ({"split": (0.5, 0.5, 0.5)}, r"split \(0.5, 0.5, 0.5\): the three fractions must be 0 or"),
        ({"split": (1.5, -0.5, 0)}, "the three fractions must be 0 or more and sum to 1"),
        ({"split": (0.5, 0.5)}, r"split \(0.5, 0.5\) is neither a ClassSplit nor three fractions"),
        ({"split": 1}, "split 1 is neither a ClassSplit nor three fractions"),
        ({"workers": 0}, "workers is 0; it must be a whole number from 1 up"),
    ],
)
def test_bad_options(root, out, options, message):
    refused(message, "folder", root, out, OptionError, **options)


def test_an_unknown_data_set(root, out):
    refused("Did you mean 'omniglot'", "omnigloot", root, out, OptionError)


def test_an_existing_output_folder_is_not_changed(root, tmp_path):
    out = tmp_path / "there"
    out.mkdir()
    (out / "file").write_text("mine")
    with pytest.raises(DataError, match="exists already"):
        prepare("folder", root, out)
    assert contents(out) == {"file": b"mine"}
    (out / "file").unlink()
    assert prepare("folder", root, out, size=8).path == out


def test_out_inside_root(root):
    with pytest.raises(DataError, match="is inside"):
        prepare("folder", root, root / "packed")
    assert sorted(os.listdir(root)) == NAMES


def test_an_output_folder_that_cannot_be_created(root, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot write"):
        prepare("folder", root, tmp_path / "file" / "packed")


def run_python(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk(root, out, workers):
    """Writing fails in the same way when the length of files is limited."""
    done = run_python(
        """
        import resource, sys
        from protorect.datasets.prepare import prepare
        from protorect.errors import DataError
        if __name__ == "__main__":
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
            try:
                prepare("folder", sys.argv[1], sys.argv[2], workers=int(sys.argv[3]))
            except DataError as error:
                print(error)
        """,
        root,
        out,
        workers,
    )
    text, errors = done.communicate(timeout=60)
    assert text.startswith(f"cannot write {out}: "), errors
    assert len(text.splitlines()) == 1
    assert os.listdir(out.parent) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_command_leaves_no_files(tmp_path, out, workers):
    root = class_folders(tmp_path / "many", NAMES, each=100)
    process = run_python(
        """
        import signal, sys, time
        from protorect.datasets.prepare import prepare
        if __name__ == "__main__":
            # A test runner in the background may have made its children ignore the signal.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            def slowly(done, total):
                print(done, flush=True)
                time.sleep(0.2)
            prepare("folder", sys.argv[1], sys.argv[2], workers=int(sys.argv[3]), progress=slowly)
        """,
        root,
        out,
        workers,
    )
    assert process.stdout.readline().strip() == "64"
    assert os.listdir(out.parent) != []
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert os.listdir(out.parent) == []


def test_files_of_a_killed_command_are_removed_by_the_next(root, out):
    process = run_python(
        """
        import sys, time
        from protorect.datasets.prepare import prepare
        if __name__ == "__main__":
            def slowly(done, total):
                print(done, flush=True)
                time.sleep(60)
            prepare("folder", sys.argv[1], sys.argv[2], workers=1, progress=slowly)
        """,
        root,
        out,
    )
    assert process.stdout.readline()
    one = class_folders(out.parent.parent / "one", ["ant"])
    with pytest.raises(DataError, match="is being written by another command"):
        prepare("folder", one, out, split=(1, 0, 0))
    left = sorted(os.listdir(out.parent))
    assert any(name.endswith("partial") for name in left)
    process.kill()
    process.communicate()
    assert sorted(os.listdir(out.parent)) == left
    (out.parent / ".other.protorect-partial").mkdir()  # of another output
    (out.parent / ".other.protorect-partial" / "file").touch()
    prepare("folder", root, out, size=8)
    assert sorted(os.listdir(out.parent)) == [".other.protorect-partial", out.name]


def test_progress_counts_pictures(root, out):
    reports = []
    prepare("folder", root, out, size=8, progress=lambda *report: reports.append(report))
    assert reports[-1] == (20, 20)
    assert reports == sorted(reports)


def test_the_crop_padding_scales_with_the_size(root, out):
    prepare("folder", root, out, size=8)
    assert PackedDataset.open(out).crop_padding == 1


def test_a_constant_channel_has_a_standard_deviation_of_one(tmp_path):
    """Networks divide by it."""
    for name, shade in (("a", 10), ("b", 200)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        Image.new("RGB", (28, 28), (shade, 0, 255)).save(tmp_path / "pictures" / name / "1.png")
    packed = prepare("folder", tmp_path / "pictures", tmp_path / "out", split=(1.0, 0.0, 0.0))
    assert packed.std[0] == pytest.approx(95 / 255)
    assert packed.std[1:] == (1.0, 1.0)


@pytest.mark.parametrize(
    ("split", "origin"),
    [
        (None, "default fractions 0.64, 0.16, 0.2 with seed 3"),
        ((0.4, 0.2, 0.4), "fractions 0.4, 0.2, 0.4 with seed 3"),
        (ClassSplit(("ant", "bee"), ("cat",), ("dog",)), "given class by class"),
    ],
)
def test_the_manifest_says_where_the_split_comes_from(root, out, split, origin):
    packed = prepare("folder", root, out, size=8, split=split, seed=3, workers=1)
    assert packed.manifest["source"]["split"] == origin


def test_the_manifest_says_that_the_folders_define_the_split(tmp_path, out):
    for split, names in (("train", NAMES[:2]), ("test", NAMES[2:])):
        class_folders(tmp_path / "root" / split, names, each=2)
    packed = prepare("folder", tmp_path / "root", out, size=8, workers=1)
    assert packed.manifest["source"]["split"] == "by the folders of the splits"


def test_fractions_may_be_a_list(root, out):
    assert prepare("folder", root, out, size=8, split=[0, 0, 1], workers=1).splits == ("test",)
