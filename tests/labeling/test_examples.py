"""Finding labeled examples in class folders, tables and mappings."""

import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from helpers.pictures import class_folders
from protorect.errors import DataError
from protorect.labeling.examples import find_examples


@pytest.fixture
def photos(tmp_path):
    root = class_folders(tmp_path / "photos", ["a", "b"], each=2)
    (root / "notes.txt").write_text("hello")
    return root


def test_folders_tables_and_mappings(photos):
    found = find_examples(photos)
    assert found.classes == ("a", "b")
    assert found.labels == ("a", "a", "b", "b")
    table = photos / "examples.csv"
    table.write_text("probability,path,label\n0.5,a/0.png,first\n1,b/0.png, second \n\n")
    assert find_examples(table).labels == ("first", "second")
    table.write_text("a/0.png,first\nb/0.png,second\n")
    assert find_examples(table).classes == ("first", "second")
    by_label = {"x": [photos / "a" / "0.png"], "y": [photos / "a" / "1.png"]}
    assert find_examples(by_label).labels == ("x", "y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a/0.png,x\n", "one class only, 'x'; give at least two"),
        ("", "no class; give at least two"),
        ("a/0.png,x\nnowhere.png,y\n", r"line 2: nowhere.png: No such file"),
        ("a/0.png,x\nb/0.png\n", r"line 2: 'b/0.png' is not path,label"),
        ("path,label\na/0.png,\n", r"line 2: a/0.png has no label"),
    ],
)
def test_bad_tables(photos, text, message):
    (photos / "examples.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        find_examples(photos / "examples.csv")


def test_bad_folders(photos, tmp_path):
    with pytest.raises(DataError, match="there are no examples at .*nowhere"):
        find_examples(tmp_path / "nowhere")
    (photos / "loose.png").write_bytes((photos / "a" / "0.png").read_bytes())
    with pytest.raises(DataError, match="loose.png lies in .* itself, in no class"):
        find_examples(photos)


def test_nested_folders_are_refused_or_taken_for_the_outermost(tmp_path):
    root = class_folders(tmp_path, ["a", "b/c", "b/d"], each=1)
    message = "b/c/0.png lies in a folder within the folder b of .*, or give --nested"
    with pytest.raises(DataError, match=message):
        find_examples(root)
    assert find_examples(root, nested=True).labels == ("a", "b", "b")


def test_unknown_is_taught_and_is_no_class(tmp_path):
    root = class_folders(tmp_path, ["a", "b", "_unknown", "_unsure"], each=1)
    found = find_examples(root)
    assert found.classes == ("a", "b")
    assert found.labels == ("_unknown", "a", "b")


def test_the_later_source_wins(photos, tmp_path):
    (tmp_path / "t.csv").write_text("path,label\nphotos/a/0.png,b\n")
    found = find_examples([photos, tmp_path / "t.csv"])
    assert found.labels == ("a", "b", "b", "b")
    assert found.sources == (0, 0, 0, 1)
    assert len(found.notices) == 1
    assert find_examples([tmp_path / "t.csv", photos]).labels == ("a", "a", "b", "b")
    mapping = {"c": [photos / "a" / "0.png"]}
    assert find_examples([photos, mapping]).classes == ("a", "b", "c")


@damaged_files
@given(damages(b"path,label\na/0.png,x\na/1.png,y\n"))
def test_a_damaged_table_has_labels_or_is_refused(photos, content):
    def labels(examples):
        return all(label.encode() for label in examples.labels)

    read_or_refused(photos / "examples.csv", content, find_examples, labels)
