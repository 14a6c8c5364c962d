"""A toy of everything that can be added, each by one registration.

What CONTRIBUTING says is needed must be enough: nothing else is edited here.
"""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from PIL import Image

import protorect
from protorect._utils.parameters import Parameters
from protorect.backbones.base import Backbone
from protorect.backbones.registry import BACKBONES, BackboneSpec
from protorect.cli import COMMANDS, main
from protorect.datasets.catalogue import DATASETS, dataset_of_table
from protorect.datasets.layouts import DatasetPictures, group_by_class
from protorect.errors import ProtorectError
from protorect.images.archives import list_pictures
from protorect.images.stored import StoredPicture
from protorect.labeling import examples
from protorect.labeling.examples.found import Example, Found
from protorect.labeling.exports import FORMATS
from protorect.labeling.prediction import Prediction
from protorect.labeling.predictions import Predictions
from protorect.methods.method import METHODS, register
from protorect.methods.rules import CosineRule


@pytest.fixture
def add_module(monkeypatch):
    """Add a module as its file would."""

    def add(name, **contents):
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)

    return add


def test_a_method(monkeypatch, feature_set, capsys):
    monkeypatch.setitem(METHODS, "toy", None)  # taken out again after the test

    @register("toy", Parameters(), "inductive", "the first sample of each class")
    def toy(task, options):
        """First samples of the classes; labels are 0, 1, ... and again."""
        return CosineRule(task.unit_rows()[0].rows[:, : task.ways])

    support, labels = torch.eye(3)[None], torch.arange(3)
    assert METHODS["toy"].fit(support, labels).scores(support).argmax(dim=-1).tolist() == [
        [0, 1, 2]
    ]
    toy_result, cspn = protorect.evaluate(*feature_set, ["toy", "cspn"], shot=1, episodes=20)
    assert (toy_result.predictions == cspn.predictions).all()
    assert main(["methods"]) == 0
    assert "the first sample of each class" in capsys.readouterr().out


def test_a_backbone(monkeypatch):
    class Means(Backbone):
        def __init__(self, name, channels, size):
            super().__init__(name, channels, size)
            self.dim = channels

        def features(self, images):
            return images.mean(dim=(2, 3))

    monkeypatch.setitem(BACKBONES, "toy", BackboneSpec(Means, "the mean color"))
    network = protorect.backbones.registry.build("toy", channels=3, size=28)
    assert network(torch.ones(2, 3, 28, 28)).shape == (2, 3)


def test_a_data_set(tmp_path, monkeypatch, add_module, capsys):
    def find_classes(root, scratch, split) -> DatasetPictures:
        """The first letter of a picture's name is its class."""
        listing = list_pictures(root, scratch)
        return group_by_class(listing, (), lambda picture: picture.path[0])

    add_module("protorect.datasets.layouts.toy", find_classes=find_classes)
    table = {"layout": "toy", "expects": "pictures", "source": "nowhere", "license": "yours"}
    monkeypatch.setitem(DATASETS, "toy", dataset_of_table("toy", table | {"size": 28}))
    (tmp_path / "pictures").mkdir()
    for name in ("a1", "a2", "b1", "b2"):
        Image.new("RGB", (30, 30)).save(tmp_path / "pictures" / f"{name}.png")
    arguments = [str(tmp_path / "pictures"), "--split", "0,0,1", "--out", str(tmp_path / "packed")]
    assert main(["prepare", "toy", *arguments]) == 0
    packed = protorect.datasets.packed.PackedDataset.open(tmp_path / "packed")
    assert packed.split("test").class_names == ("a", "b")
    assert main(["datasets"]) == 0
    assert "toy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"folder": "images"}, "unknown field 'folder'.*Known: bright_on_dark, channels"),
        ({"layout": ...}, "layout is missing; it must be text"),
        ({"size": "84"}, "size is '84'; it must be a whole number"),
    ],
)
def test_a_wrong_field_of_a_data_set_is_named(change, message):
    table = {"layout": "folder", "expects": "pictures", "source": "nowhere", "license": "yours"}
    table = {field: value for field, value in (table | change).items() if value is not ...}
    with pytest.raises(ProtorectError, match=rf"^catalogue.toml, table \[toy\]: {message}"):
        dataset_of_table("toy", table)


def test_an_export_format(tmp_path, monkeypatch, add_module):
    def write(rows, path):
        path.write_text("".join(f"{row.label}\n" for row in rows))

    add_module("protorect.labeling.exports.toy_labels", check=lambda: None, write=write)
    monkeypatch.setitem(FORMATS, "toy-labels", "labels only")
    row = Prediction("1.jpg", "cat", 0.9, "dog", 0.8, 0.75, "cat")
    predictions = Predictions((row,), (), (), ("cat", "dog"), "cspn", ("",))
    predictions.export(tmp_path / "labels.txt", "toy-labels")
    assert (tmp_path / "labels.txt").read_text() == "cat\n"


def test_a_reader_of_examples(tmp_path, monkeypatch, add_module):
    for name in ("cat.png", "dog.png"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "toy.txt").write_bytes(b"TOY")

    def read(path, nested):
        pictures = (StoredPicture.from_file(tmp_path / name) for name in ("cat.png", "dog.png"))
        return Found([Example(picture, picture.path[-7:-4]) for picture in pictures])

    add_module(
        "protorect.labeling.examples.toy", recognizes=lambda path, head: head == b"TOY", read=read
    )
    monkeypatch.setattr(examples, "READERS", ("toy", *examples.READERS))
    assert examples.find_examples(tmp_path / "toy.txt").labels == ("cat", "dog")


def test_a_command(monkeypatch, add_module, capsys):
    def add_arguments(parser):
        parser.add_argument("number", type=int)

    def run(options: SimpleNamespace):
        sys.stdout.write(f"{2 * options.number}\n")

    add_module("protorect.cli.toy_double", __doc__="Double.", add_arguments=add_arguments, run=run)
    monkeypatch.setitem(COMMANDS, "toy-double", "double a number")
    assert main(["toy-double", "21"]) == 0
    assert capsys.readouterr().out == "42\n"
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "double a number" in capsys.readouterr().out
