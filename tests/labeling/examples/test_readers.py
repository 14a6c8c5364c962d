"""Examples in the formats of tables and of other programs."""

import csv
import json

import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from helpers.pictures import class_folders
from protorect.errors import DataError
from protorect.labeling.examples import find_examples
from protorect.labeling.exports import Labeled, Rows, export
from protorect.labeling.prediction import Prediction


@pytest.fixture
def photos(tmp_path):
    return class_folders(tmp_path / "photos", ["a", "b"], each=3)


def predictions(photos):
    """Six rows: four as predicted, one accepted, one example."""
    statuses = ["proposed", "accepted", "unsure", "proposed", "example", "unknown"]
    rows = []
    for number, (path, status) in enumerate(
        zip(sorted(photos.rglob("*.png")), statuses, strict=True)
    ):
        label, folder = "ab"[number > 2], {"unsure": "_unsure", "unknown": "_unknown"}.get(status)
        row = Prediction(str(path), label, 0.9, "c", 0.8, 0.5, folder or label)
        rows.append(Labeled(row, status))
    return Rows(tuple(rows))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("header", ["path,label", "Class,FILE", "size,Label,FileName", None])
def test_tables_of_all_kinds(photos, encoding, separator, header):
    (photos / "a" / "0.png").rename(photos / "a" / "größe.png")
    rows = [("a/größe.png", "süß"), ("b/0.png", "b")]
    lines = []
    for path, label in rows:
        cells = {"path": path, "label": label, "size": "1"}
        order = [] if header is None else header.lower().split(",")
        names = {"class": "label", "file": "path", "filename": "path"}
        lines.append([cells[names.get(one, one)] for one in order or ("path", "label")])
    table = [header.split(","), *lines] if header else lines
    text = "\r\n".join(separator.join(line) for line in table)
    (photos / "t.txt").write_bytes(text.encode(encoding))
    found = find_examples(photos / "t.txt")
    assert found.labels == ("süß", "b")
    assert not any(one.error for one in found.pictures)


def test_a_file_name_that_is_not_unicode(photos):
    import os

    name = os.fsdecode(b"caf\xe9.png")
    try:
        (photos / "a" / "0.png").rename(photos / name)
    except OSError:
        pytest.skip("this system has Unicode names only")
    (photos / "t.csv").write_bytes(b"path,label\ncaf\xe9.png,x\nb/0.png,b\n")
    assert find_examples(photos / "t.csv").pictures[0].file == str(photos / name)
    (photos / "u.csv").write_text("path,label\ncaf\\xe9.png,x\nb/0.png,b\n")
    assert find_examples(photos / "u.csv").pictures[0].file == str(photos / name)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_of_exported_predictions_the_checked_ones_are_examples(photos, tmp_path, format_):
    if format_ == "parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"exported.{format_}"
    export(predictions(photos), file, format_)
    found = find_examples(file)
    assert [one.file[-7:] for one in found.pictures] == ["a/1.png", "b/1.png"]
    assert found.labels == ("a", "b")
    assert found.sorted_too == {one.file for one in found.pictures}
    assert not found.complete
    assert found.apart == []


@pytest.mark.parametrize(
    ("place", "column", "value", "label"),
    [
        (0, "label", "b", "b"),
        (0, "label", "new", "new"),
        (0, "label", "_unknown", "_unknown"),
        (2, "label", "c", "c"),
        (2, "status", "ACCEPTED", "a"),
        (0, "label", "_unsure", None),
        (0, "label", "", None),
    ],
)
def test_edited_rows(photos, tmp_path, place, column, value, label):
    file = tmp_path / "exported.csv"
    export(predictions(photos), file, "csv")
    lines = list(csv.DictReader(file.read_text().splitlines()))
    before = find_examples(file).pictures
    lines[place][column] = value
    with file.open("w", newline="") as output:
        writer = csv.DictWriter(output, lines[0], delimiter=";")  # as a spreadsheet saves it
        writer.writeheader()
        writer.writerows(lines)
    found = find_examples(file)
    after = dict(zip(found.pictures, found.labels, strict=True))
    new = [label for picture, label in after.items() if picture not in before]
    assert new == ([] if label is None else [label])


def test_hugging_face(photos, tmp_path):
    export(predictions(photos), tmp_path / "hf", "huggingface")
    found = find_examples(tmp_path / "hf")
    assert found.labels == ("a", "b")
    metadata = photos / "metadata.jsonl"
    metadata.write_text(
        '{"file_name": "a/0.png", "label": 3}\n{"file_name": "b/0.png", "label": "x"}'
    )
    assert find_examples(photos).labels == find_examples(metadata).labels == ("3", "x")
    metadata.write_text(
        '{"file_name": "a/0.png", "label": 3}\n{"file_name": "no.png", "label": "x"}'
    )
    with pytest.raises(DataError, match=r"metadata.jsonl, line 2: no.png: No such file"):
        find_examples(metadata)
    metadata.write_text('{"file_name": "a/0.png", "label": 3}\n{"file_name": "a/1.png"}')
    with pytest.raises(DataError, match=r"metadata.jsonl, line 2, is damaged: label is missing"):
        find_examples(metadata)


def task(image, *labels, **more):
    results = [{"type": "choices", "value": {"choices": [label]}} for label in labels]
    return {"data": {"image": str(image)}, "annotations": [{"result": results, **more}]}


def test_label_studio(photos, tmp_path):
    export(predictions(photos), tmp_path / "tasks.json", "label-studio")
    assert find_examples(tmp_path / "tasks.json").labels == ("a", "b")
    file = photos / "tasks.json"
    tasks = [
        task(f"/data/local-files/?d={photos}/a/0.png", "x"),
        task("b/0.png", "y"),
        task("b/1.png", "y", was_cancelled=True),
        {"data": {"image": "nowhere.png"}, "annotations": []},
    ]
    file.write_text(json.dumps(tasks))
    assert find_examples(file).labels == ("x", "y")
    file.write_text(
        json.dumps([{"image": "a/0.png", "choice": "x"}, {"image": "b/0.png", "label": "y"}])
    )
    assert find_examples(file).labels == ("x", "y")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([task("a/0.png", "x", "y")], "task 1: a picture needs one label, it has"),
        ([task("a/0.png", "x"), task("no.png", "x")], "task 2: no.png: No such file"),
        ([task("https://a.org/0.png", "x")], "task 1: https://a.org/0.png is not on this machine"),
        ([{"data": {"text": "x"}, "annotations": task("", "x")["annotations"]}], "no picture"),
        ([{"data": 3}], "no export of Label Studio: task 1: data is 3"),
        ([1], "no export of Label Studio"),
    ],
)
def test_bad_tasks(photos, tasks, message):
    (photos / "tasks.json").write_text(json.dumps(tasks))
    with pytest.raises(DataError, match=message):
        find_examples(photos / "tasks.json")


def test_parquet(photos):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = photos / "t.parquet"
    parquet.write_table(pyarrow.table({"File": ["a/0.png", "b/0.png"], "CLASS": ["x", "y"]}), file)
    assert find_examples(file).labels == ("x", "y")
    parquet.write_table(pyarrow.table({"path": ["a/0.png", "no.png"], "label": ["x", "y"]}), file)
    with pytest.raises(DataError, match=r"t.parquet, row 2: no.png: No such file"):
        find_examples(file)
    parquet.write_table(pyarrow.table({"path": ["a/0.png"]}), file)
    with pytest.raises(DataError, match=r"t.parquet has no column label; it has path"):
        find_examples(file)
    file.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"cannot read .*t.parquet"):
        find_examples(file)


def test_a_project(colors):
    from protorect.labeling.session import LabelingSession

    project = colors.root / "project"
    with LabelingSession.open(project, colors.pictures, source=colors.weights) as session:
        session.label([0, 1], "x")
        session.label([8], "y")
        session.mark_unknown([2])
        session.label([9], "z")
        session.undo()
    found = find_examples(project)
    assert found.labels == ("x", "x", "_unknown", "y")
    assert found.classes == ("x", "y")
    assert found.apart == []
    (colors.pictures / "blue" / "0.png").unlink()
    found = find_examples(project)
    assert len(found.labels) == 3
    assert found.notices == (f"1 labeled pictures of {project} are gone",)


JSON = json.dumps([task("a/0.png", "x"), task("b/0.png", "y")]).encode()
LINES = b'{"file_name": "a/0.png", "label": "x"}\n{"file_name": "b/0.png", "label": "y"}\n'
TABLE = (
    b"path,label,probability,folder,status,predicted\n"
    b"a/0.png,x,1,x,accepted,x\nb/0.png,y,1,x,proposed,x\n"
)


@damaged_files
@given(damages(JSON) | damages(LINES) | damages(TABLE))
def test_a_damaged_file_has_labels_or_is_refused(photos, content):
    def labels(examples):
        return all(label.encode() for label in examples.labels)

    read_or_refused(photos / "examples", content, find_examples, labels)
