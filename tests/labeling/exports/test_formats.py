"""Formats that predictions are exported to."""

import csv
import json
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
from PIL import Image

from helpers.pictures import encoded
from protorect import DataError, ImageClassifier, MissingExtraError, OptionError
from protorect._utils.tables import read_table
from protorect.labeling.exports import (
    FORMATS,
    ExportOptions,
    Labeled,
    Rows,
    check_format,
    export,
)
from protorect.labeling.prediction import COLUMNS, Prediction

ROWS = (
    Prediction("a, b.jpg", "cat", 0.912345, "dog", 0.8, 0.75, "cat"),
    Prediction("c.jpg", "dog", 0.4, "cat", 0.1, 0.01, "_unknown"),
)
ROUNDED = [["a, b.jpg", "cat", 0.9123, "dog", 0.8, 0.75, "cat", 0.25, "proposed"]]
ROUNDED += [["c.jpg", "dog", 0.4, "cat", 0.1, 0.01, "_unknown", 0.99, "proposed"]]
FOLDERS = ("folders", "split", "huggingface", "fiftyone")


def row(path, label, status="proposed", folder=None, probability=0.9):
    return Labeled(
        Prediction(str(path), label, probability, "", 0.8, 0.75, folder or label), status
    )


@pytest.fixture
def rows(tmp_path):
    """Three cats, two of the same name, two dogs, and one that fits no class."""
    rows = []
    for number, (name, label, status) in enumerate(
        [
            ("a/1.png", "cat", "example"),
            ("b/1.png", "cat", "accepted"),
            ("b/2.png", "cat", "proposed"),
            ("b/3.png", "dog", "example"),
            ("b/1.jpg", "dog", "example"),
        ]
    ):
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = "PNG" if path.suffix == ".png" else "JPEG"

        path.write_bytes(encoded(Image.new("RGB", (40, 30), (40 * number, 200, 10)), kind))
        rows.append(row(path, label, status))
    aside = tmp_path / "pictures" / "aside.png"
    aside.write_bytes(encoded())
    return [*rows, row(aside, "cat", "unknown", "_unknown")]


def exported(rows, path, name, **options):
    return export(Rows(tuple(rows), ExportOptions(**options)), path, name)


def tree(root):
    return {
        os.path.relpath(os.path.join(folder, name), root): Path(folder, name).read_bytes()
        for folder, _, names in os.walk(root)
        for name in names
    }


def test_csv(tmp_path):
    export(ROWS, tmp_path / "p.csv", "csv")
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == [*COLUMNS, "status"]
    assert rows == [list(map(str, row)) for row in ROUNDED]


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export(ROWS, tmp_path / "p.parquet", "parquet")
    table = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert list(table) == [*COLUMNS, "status"]
    assert [list(row) for row in zip(*table.values(), strict=True)] == ROUNDED


def test_an_unknown_format_suggests_the_nearest(tmp_path):
    with pytest.raises(OptionError, match="unknown export format 'parket'. Did you mean 'parquet'"):
        export(ROWS, tmp_path / "p", "parket")
    assert not list(tmp_path.iterdir())


def test_a_format_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'protorect\[parquet\]'"):
        check_format("parquet")
    with pytest.raises(MissingExtraError):
        export(ROWS, tmp_path / "p.parquet", "parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", FORMATS)
def test_a_failed_export_leaves_the_place_as_it_was(
    rows, tmp_path, monkeypatch, name, color_weights
):
    module = import_module(f"protorect.labeling.exports.{name.replace('-', '_')}")
    write, path = module.write, tmp_path / "out" / "p"
    path.parent.mkdir()
    if name not in FOLDERS:
        path.write_text("before")

    def write_and_fail(rows, temporary):
        write(rows, temporary)
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(module, "write", write_and_fail)
    with pytest.raises(RuntimeError, match="the disk is full"):
        export(Rows(tuple(rows), classifier=(("source", color_weights),)), path, name)
    assert [one.read_text() for one in path.parent.iterdir()] == (
        [] if name in FOLDERS else ["before"]
    )


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_format_refuses_a_folder_with_something_in_it(rows, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="exists already"):
        exported(rows, tmp_path / "out", name)
    assert os.listdir(tmp_path / "out") == ["mine.txt"]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_picture_that_is_gone_is_named_and_nothing_is_left(rows, tmp_path, name):
    os.unlink(rows[2].path)
    with pytest.raises(DataError, match=r"cannot link .*2\.png: No such file"):
        exported(rows, tmp_path / "out", name)
    assert not (tmp_path / "out").exists()


def test_formulas_are_harmless_and_read_back(tmp_path):
    wild = ["=1+1.jpg", "+a.jpg", "-a.jpg", "@a.jpg", "a=b.jpg", "'a.jpg"]
    export(
        [Prediction(name, "=cmd()", 0.9, "", 0.8, 0.75, "=cmd()") for name in wild],
        tmp_path / "p.csv",
        "csv",
    )
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@")]
    table = read_table(tmp_path / "p.csv", ("path", "label"))
    assert [line for _, line in table] == [[name, "=cmd()"] for name in wild]


@pytest.mark.parametrize("copy", [False, True])
def test_folders(rows, tmp_path, copy):
    assert exported(rows, tmp_path / "out", "folders", copy=copy) == 5
    contents = {one.path: Path(one.path).read_bytes() for one in rows}
    assert tree(tmp_path / "out") == {
        "cat/1.png": contents[rows[0].path],
        "cat/1 (2).png": contents[rows[1].path],
        "cat/2.png": contents[rows[2].path],
        "dog/3.png": contents[rows[3].path],
        "dog/1.jpg": contents[rows[4].path],
    }
    assert all(path.is_symlink() != copy for path in (tmp_path / "out").glob("*/*"))


def test_where_no_links_can_be_made_there_are_copies(rows, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no links here")

    monkeypatch.setattr(os, "symlink", refuse)
    assert exported(rows, tmp_path / "out", "folders") == 5
    assert (tmp_path / "out/cat/1.png").read_bytes() == Path(rows[0].path).read_bytes()
    assert not (tmp_path / "out/cat/1.png").is_symlink()


def test_split_is_stratified_and_seeded(tmp_path):
    many = []
    for label, count in (("cat", 20), ("dog", 5), ("lone", 1)):
        for number in range(count):
            path = tmp_path / "pictures" / f"{label}{number}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x")
            many.append(row(path, label))
    parts = []
    for out, seed in (("1", 0), ("2", 0), ("3", 1)):
        exported(many, tmp_path / out, "split", validation=0.2, seed=seed)
        parts.append(sorted(tree(tmp_path / out)))
    counts = {
        (part, label): len(os.listdir(tmp_path / "1" / part / label))
        for part in ("train", "val")
        for label in ("cat", "dog", "lone")
    }
    assert list(counts.values()) == [16, 4, 1, 4, 1, 0]
    assert parts[0] == parts[1] != parts[2]


def test_hugging_face_datasets_loads_it(rows, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    exported(rows, tmp_path / "out", "huggingface")
    loaded = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "out"), cache_dir=str(tmp_path / "cache")
    )["train"]
    assert sorted(zip(loaded["label"], loaded["status"], strict=True)) == sorted(
        (one.label, one.status) for one in rows[:5]
    )
    by_source = {one["source"]: one["image"].convert("RGB").getpixel((0, 0)) for one in loaded}

    for one in rows[:5]:
        with Image.open(one.path) as image:
            assert by_source[one.path] == image.convert("RGB").getpixel((0, 0))


def test_label_studio_tasks(rows, tmp_path):
    """As https://labelstud.io/guide/predictions and /guide/export describe tasks."""
    assert exported(rows, tmp_path / "tasks.json", "label-studio") == 6
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert [set(task) for task in tasks] == [{"data", "meta", "annotations", "predictions"}] * 6
    assert [len(task["annotations"]) for task in tasks] == [1, 1, 0, 1, 1, 0]
    assert [len(task["predictions"]) for task in tasks] == [0, 0, 1, 0, 0, 1]
    (result,) = tasks[0]["annotations"][0]["result"]
    assert result == {
        "from_name": "label",
        "to_name": "image",
        "type": "choices",
        "value": {"choices": ["cat"]},
    }
    assert tasks[2]["predictions"][0]["score"] == 0.9
    assert tasks[0]["data"]["image"] == f"/data/local-files/?d={rows[0].path.lstrip('/')}"


def test_label_studio_accepts_the_tasks(rows, tmp_path):
    """By Label Studio's own library, where it is installed.

    It is no part of the development environment, because it needs OpenCV and an older numpy; the
    test above is by the documented schema.
    """
    interface = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface(
        '<View><Image name="image" value="$image"/><Choices name="label" toName="image">'
        '<Choice value="cat"/><Choice value="dog"/></Choices></View>'
    )
    exported(rows, tmp_path / "tasks.json", "label-studio")
    for task in json.loads((tmp_path / "tasks.json").read_text()):
        interface.validate_task({"data": task["data"]})
        for annotation in task["annotations"]:
            assert interface.validate_annotation(annotation)
        for prediction in task["predictions"]:
            assert interface.validate_prediction(prediction)


def test_fiftyone_labels(rows, tmp_path):
    """As FiftyOne's guide describes FiftyOneImageClassificationDataset: keys without suffixes.

    Not by FiftyOne itself, which needs a database server and OpenCV.
    """
    exported(rows, tmp_path / "out", "fiftyone")
    document = json.loads((tmp_path / "out" / "labels.json").read_text())
    data = tmp_path / "out" / "data"
    files = {
        os.path.splitext(path.relative_to(data))[0]: path.read_bytes() for path in data.rglob("*.*")
    }
    assert set(files) == set(document["labels"])
    assert {
        files[key]: document["classes"][label] for key, label in document["labels"].items()
    } == {Path(one.path).read_bytes(): one.label for one in rows[:5]}


def test_a_classifier_has_the_checked_pictures(rows, tmp_path, color_weights):
    arguments = (("source", color_weights), ("method", "cspn"))
    path = tmp_path / "c.safetensors"
    (tmp_path / "none.png").write_bytes(encoded(Image.new("RGB", (40, 30), (9, 9, 9))))
    rows.append(row(tmp_path / "none.png", "", "unknown", "_unknown"))
    assert export(Rows(tuple(rows), classifier=arguments), path, "classifier") == 5
    classifier = ImageClassifier.load(path)
    assert classifier.classes == ("cat", "dog")
    assert classifier.unknown.shape == (1, classifier.support.shape[1])
    predicted = {one.path: one.label for one in classifier.predict([rows[0].path, rows[4].path])}
    assert predicted == {rows[0].path: "cat", rows[4].path: "dog"}


def test_a_classifier_needs_two_checked_classes(rows, tmp_path):
    with pytest.raises(DataError, match="at least two classes, there are 1"):
        export(Rows(tuple(rows[:3])), tmp_path / "c.safetensors", "classifier")


def test_nothing_to_export_is_an_error(tmp_path, rows):
    with pytest.raises(DataError, match="no labeled picture to export as folders"):
        exported(rows[-1:], tmp_path / "out", "folders")
