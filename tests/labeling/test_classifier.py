"""From a few examples to labels, in Python."""

import csv
import shutil

import numpy as np
import pytest

import protorect
from helpers.pictures import contents
from helpers.sorting import OTHER, picture
from protorect.errors import DataError, OptionError
from protorect.uncertainty.thresholds import Thresholds

EVERYTHING = Thresholds(unknown=0, unsure=0)


def truth(predictions):
    return [row.path.split("/")[-2] for row in predictions]


def test_a_pile_is_labelled_and_nothing_is_touched(world):
    before = contents(world.root)
    found = protorect.sort_images(world.examples, world.pile, source=world.weights)
    assert len(found) == 24
    assert found.labels == truth(found)
    assert contents(world.root) == before
    row = found[0]
    assert row.probability > 0.5
    assert 0 <= row.margin <= row.probability
    assert row.runner_up in found.classes
    assert found.method == "bd-cspn-plus"
    assert found.frame.shape == (24, 7)
    assert list(found.frame.columns) == list(row._fields)


def test_foreign_pictures_are_unknown(world):
    for seed in range(6):
        picture(world.pile / "other" / f"{seed}.png", OTHER, 100 + seed)
    found = protorect.sort_images(world.examples, world.pile, source=world.weights)
    foreign = [row.folder for row in found if "/other/" in row.path]
    assert foreign.count("_unknown") >= 5


def test_thresholds_decide_who_is_set_aside(world):
    model = protorect.ImageClassifier.from_examples(world.examples, source=world.weights)
    everything = model.predict(world.pile, thresholds=EVERYTHING)
    assert [row.folder for row in everything] == everything.labels
    nothing = model.predict(world.pile, thresholds=Thresholds(unknown=1, unsure=0))
    assert {row.folder for row in nothing} == {"_unknown"}
    unsure = model.predict(world.pile, thresholds=Thresholds(unknown=0, unsure=1))
    assert "_unsure" in {row.folder for row in unsure}
    assert nothing.labels == everything.labels


def test_an_example_in_the_pile_has_its_label(world):
    copied = world.pile / "again.png"
    shutil.copy(world.examples / "red" / "0.png", copied)
    found = protorect.sort_images(world.examples, world.pile, source=world.weights)
    assert found.examples == (str(copied),)
    row = next(row for row in found if row.path == str(copied))
    assert (row.label, row.probability, row.folder) == ("red", 1.0, "red")


def test_examples_inside_the_pile_are_not_sorted(world):
    found = protorect.sort_images(world.examples, world.root, source=world.weights)
    assert len(found) == 24


def test_unreadable_pictures_are_listed(world):
    (world.pile / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    (world.pile / "empty.png").write_bytes(b"")
    found = protorect.sort_images(world.examples, world.pile, source=world.weights)
    assert len(found) == 24
    assert {path.rsplit("/", 1)[1]: reason for path, reason in found.problems} == {
        "broken.jpg": "not a picture in a format read here",
        "empty.png": "empty file",
    }


def test_saved_and_loaded_it_answers_the_same(world, tmp_path):
    made = protorect.ImageClassifier.from_examples(
        world.examples, source=world.weights, method="bd-i", thresholds=Thresholds(0.2, 0.6)
    )
    made.save(tmp_path / "colours.safetensors")
    loaded = protorect.ImageClassifier.load(tmp_path / "colours.safetensors")
    assert loaded.predict(world.pile) == made.predict(world.pile)
    assert loaded.thresholds == made.thresholds


def test_another_network_is_refused_on_loading(world, tmp_path):
    made = protorect.ImageClassifier.from_examples(
        world.examples, source=world.weights, precision="float32"
    )
    made.save(tmp_path / "colours.safetensors")
    with pytest.raises(DataError, match="was made with other weights"):
        protorect.ImageClassifier.load(tmp_path / "colours.safetensors", precision="bfloat16")


def test_a_single_picture(world):
    model = protorect.ImageClassifier.from_examples(world.examples, source=world.weights)
    found = model.predict(world.pile / "green" / "0.png")
    assert found.labels == ["green"]
    assert found.method == "cspn"


def test_the_same_picture_under_two_labels_is_refused(world):
    shutil.copy(world.examples / "red" / "0.png", world.examples / "blue" / "copy.png")
    message = r"two classes: blue/copy.png \(blue\) and red/0.png \(red\)"
    with pytest.raises(DataError, match=message):
        protorect.sort_images(world.examples, world.pile, source=world.weights)


def test_a_class_without_a_readable_example_is_refused(world):
    for path in (world.examples / "red").iterdir():
        path.write_bytes(b"broken")
    message = "the class red has no readable example .3 unreadable: red/0.png"
    with pytest.raises(DataError, match=message):
        protorect.sort_images(world.examples, world.pile, source=world.weights)
    shutil.rmtree(world.examples / "red")
    (world.examples / "red").mkdir()
    with pytest.raises(DataError, match="the class red has no readable example"):
        protorect.sort_images(world.examples, world.pile, source=world.weights)


def test_other_mistakes(world):
    with pytest.raises(OptionError, match="bd-cspn"):
        protorect.ImageClassifier.from_examples(world.examples, method="bd-cspm")
    (world.root / "empty").mkdir()
    with pytest.raises(DataError, match="there is no picture to sort"):
        protorect.sort_images(world.examples, world.root / "empty", source=world.weights)


def test_tables(world, tmp_path):
    found = protorect.sort_images(world.examples, world.pile, source=world.weights)
    found.to_csv(tmp_path / "predictions.csv")
    text = (tmp_path / "predictions.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["label"] for row in rows] == found.labels
    parquet = pytest.importorskip("pyarrow.parquet")
    found.to_parquet(tmp_path / "predictions.parquet")
    table = parquet.read_table(tmp_path / "predictions.parquet")
    assert table["label"].to_pylist() == found.labels
    np.testing.assert_allclose(
        table["probability"], [float(row["probability"]) for row in rows], atol=1e-6
    )
