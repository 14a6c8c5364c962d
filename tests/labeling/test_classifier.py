"""From a few examples to labels, in Python."""

import copy
import csv
import pickle
import shutil

import numpy as np
import pytest
import torch

import protorect
from helpers.pictures import contents
from helpers.sorting import OTHER, picture
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.embedding.sources import load_embedder
from protorect.errors import DataError, OptionError
from protorect.uncertainty.thresholds import Thresholds

EVERYTHING = Thresholds(unknown=0, unsure=0)


def truth(predictions):
    return [row.path.split("/")[-2] for row in predictions]


def test_pictures_are_labeled_and_nothing_is_touched(colors):
    before = contents(colors.root)
    predictions = protorect.sort_images(colors.examples, colors.pictures, source=colors.weights)
    assert len(predictions) == 24
    assert predictions.labels == truth(predictions)
    assert contents(colors.root) == before
    row = predictions[0]
    assert row.probability > 0.5
    assert 0 <= row.margin <= row.probability
    assert row.runner_up in predictions.classes
    assert predictions.method == "bd-cspn-plus"
    assert predictions.frame.shape == (24, 8)
    assert list(predictions.frame.columns) == [*row._fields, "ood"]
    np.testing.assert_allclose(
        predictions.frame["ood"], 1 - predictions.frame["familiarity"], atol=1e-9
    )
    assert predictions.frame["ood"].between(0, 1).all()


def test_distractors_are_unknown(colors):
    for seed in range(6):
        picture(colors.pictures / "other" / f"{seed}.png", OTHER, 100 + seed)
    predictions = protorect.sort_images(colors.examples, colors.pictures, source=colors.weights)
    folders = [row.folder for row in predictions if "/other/" in row.path]
    assert folders.count("_unknown") >= 5


def test_thresholds_decide_which_pictures_are_set_aside(colors):
    model = protorect.ImageClassifier.from_examples(colors.examples, source=colors.weights)
    everything = model.predict(colors.pictures, thresholds=EVERYTHING)
    assert [row.folder for row in everything] == everything.labels
    nothing = model.predict(colors.pictures, thresholds=Thresholds(unknown=1, unsure=0))
    assert {row.folder for row in nothing} == {"_unknown"}
    unsure = model.predict(colors.pictures, thresholds=Thresholds(unknown=0, unsure=1))
    assert "_unsure" in {row.folder for row in unsure}
    assert nothing.labels == everything.labels


def test_a_copy_of_an_example_has_its_label(colors):
    copied = colors.pictures / "again.png"
    shutil.copy(colors.examples / "red" / "0.png", copied)
    predictions = protorect.sort_images(colors.examples, colors.pictures, source=colors.weights)
    assert predictions.examples == (str(copied),)
    row = next(row for row in predictions if row.path == str(copied))
    assert (row.label, row.probability, row.folder) == ("red", 1.0, "red")


def test_examples_among_the_pictures_are_not_labeled(colors):
    predictions = protorect.sort_images(colors.examples, colors.root, source=colors.weights)
    assert len(predictions) == 24


def test_unreadable_pictures_are_listed(colors):
    (colors.pictures / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    (colors.pictures / "empty.png").write_bytes(b"")
    predictions = protorect.sort_images(colors.examples, colors.pictures, source=colors.weights)
    assert len(predictions) == 24
    assert {path.rsplit("/", 1)[1]: reason for path, reason in predictions.problems} == {
        "broken.jpg": "not a picture in a format read here",
        "empty.png": "empty file",
    }


def test_a_saved_classifier_predicts_the_same(colors, tmp_path):
    made = protorect.ImageClassifier.from_examples(
        colors.examples, source=colors.weights, method="bd-i", thresholds=Thresholds(0.2, 0.6)
    )
    made.save(tmp_path / "colors.safetensors")
    loaded = protorect.ImageClassifier.load(tmp_path / "colors.safetensors")
    assert loaded.predict(colors.pictures) == made.predict(colors.pictures)
    assert loaded.thresholds == made.thresholds


def test_unknown_examples_sharpen_the_scores_also_of_a_saved_classifier(colors, tmp_path):
    pink = colors.add_pink()
    examples = {name: list((colors.examples / name).iterdir()) for name in ("blue", "green", "red")}
    results = []
    for taught in ([], pink[:3]):
        made = protorect.ImageClassifier.from_examples(
            examples | {"_unknown": taught}, source=colors.weights
        )
        made.save(tmp_path / "colors.safetensors")
        loaded = protorect.ImageClassifier.load(tmp_path / "colors.safetensors")
        assert loaded.predict(colors.pictures) == made.predict(colors.pictures)
        results.append({row.path: row for row in made.predict(colors.pictures)})
    before, after = results
    assert all(after[str(path)].ood > before[str(path)].ood for path in pink)
    assert {after[str(path)].folder for path in pink[:3]} == {"_unknown"}
    assert before.keys() == after.keys()
    only = made.predict(pink[:2])  # nothing else is to be labeled
    assert [(row.folder, row.familiarity) for row in only] == [("_unknown", 0.0)] * 2


@pytest.mark.parametrize("method", protorect.METHODS)
def test_copies_of_examples_alone_are_no_samples_for_any_method(colors, method):
    pink = colors.add_pink()
    known = list((colors.examples / "red").iterdir())
    made = protorect.ImageClassifier.from_examples(
        {"red": known, "blue": list((colors.examples / "blue").iterdir()), "_unknown": pink[:2]},
        source=colors.weights,
        method=method,
    )
    folders = [row.folder for row in made.predict([*pink[:2], known[0]])]
    assert sorted(folders) == ["_unknown", "_unknown", "red"]
    assert [row.folder for row in made.predict(known[:1])] == ["red"]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_and_pickles_predict_the_same(colors, precision, copied):
    made = protorect.ImageClassifier.from_examples(
        colors.examples, source=colors.weights, precision=precision, cache=False
    )
    other = copied(made)
    assert other.predict(colors.pictures) == made.predict(colors.pictures)
    assert other.embedder.digest == made.embedder.digest


def test_loading_with_another_network_is_refused(colors, tmp_path):
    made = protorect.ImageClassifier.from_examples(
        colors.examples, source=colors.weights, precision="float32"
    )
    made.save(tmp_path / "colors.safetensors")
    with pytest.raises(DataError, match="was made with other weights"):
        protorect.ImageClassifier.load(tmp_path / "colors.safetensors", precision="bfloat16")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ["blue", "red"]}, "labels do not number its 2 classes"),
        ({"contents": []}, "0 contents for 9 examples"),
        ({"of_no_class": ["00"]}, "features .0, .* of 1 unknown ones"),
        ({"contents": [1]}, r"contents\[0\] is 1; it must be text"),
        ({"contents": ["x"] * 9}, "non-hexadecimal number"),
        ({"classes": [1, 2, 3]}, r"classes\[0\] is 1; it must be text"),
        ({"method": 5}, "method is 5; it must be None or text"),
        ({"method": "bd-cspm"}, "unknown method 'bd-cspm'"),
        ({"unsure": 2}, "unsure is 2"),
        ({"unknown": None}, "unknown is None"),
    ],
)
def test_a_damaged_classifier_is_refused(colors, tmp_path, changes, message):
    path = tmp_path / "colors.safetensors"
    protorect.ImageClassifier.from_examples(colors.examples, source=colors.weights).save(path)
    tensors, config = load_tensors(path)
    save_tensors(path, tensors, config | changes)
    with pytest.raises(DataError, match=f"damaged (classifier|configuration): {message}"):
        protorect.ImageClassifier.load(path)


def test_a_single_picture_is_labeled_by_the_examples_alone(colors):
    model = protorect.ImageClassifier.from_examples(colors.examples, source=colors.weights)
    predictions = model.predict(colors.pictures / "green" / "0.png")
    assert predictions.labels == ["green"]
    assert predictions.method == "cspn"


def test_the_same_picture_under_two_labels_is_refused(colors):
    shutil.copy(colors.examples / "red" / "0.png", colors.examples / "blue" / "copy.png")
    message = r"two classes: blue/copy.png \(blue\) and red/0.png \(red\)"
    with pytest.raises(DataError, match=message):
        protorect.sort_images(colors.examples, colors.pictures, source=colors.weights)


def test_a_class_without_a_readable_example_is_refused(colors):
    for path in (colors.examples / "red").iterdir():
        path.write_bytes(b"broken")
    message = "the class red has no readable example .3 unreadable: red/0.png"
    with pytest.raises(DataError, match=message):
        protorect.sort_images(colors.examples, colors.pictures, source=colors.weights)
    shutil.rmtree(colors.examples / "red")
    (colors.examples / "red").mkdir()
    with pytest.raises(DataError, match="the class red has no readable example"):
        protorect.sort_images(colors.examples, colors.pictures, source=colors.weights)


def test_thresholds_of_another_type_are_refused(colors):
    for work in (protorect.sort_images, protorect.ImageClassifier.from_examples):
        arguments = [colors.examples, colors.pictures][: 2 if work is protorect.sort_images else 1]
        with pytest.raises(OptionError, match="thresholds is 'x'; it must be Thresholds"):
            work(*arguments, source="nowhere", thresholds="x")


def test_unknown_methods_and_empty_folders_are_refused(colors):
    with pytest.raises(OptionError, match="bd-cspn"):
        protorect.ImageClassifier.from_examples(colors.examples, method="bd-cspm")
    (colors.root / "empty").mkdir()
    with pytest.raises(DataError, match="there is no picture to sort"):
        protorect.sort_images(colors.examples, colors.root / "empty", source=colors.weights)


def test_the_tables_hold_every_prediction(colors, tmp_path):
    predictions = protorect.sort_images(colors.examples, colors.pictures, source=colors.weights)
    predictions.to_csv(tmp_path / "predictions.csv")
    text = (tmp_path / "predictions.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["label"] for row in rows] == predictions.labels
    parquet = pytest.importorskip("pyarrow.parquet")
    predictions.to_parquet(tmp_path / "predictions.parquet")
    table = parquet.read_table(tmp_path / "predictions.parquet")
    assert table["label"].to_pylist() == predictions.labels
    np.testing.assert_allclose(
        table["probability"], [float(row["probability"]) for row in rows], atol=1e-6
    )


def as_saved_earlier(path, computed_in, **changes):
    """A classifier with Lite0's features in this precision, without it in the file."""
    digest = load_embedder("efficientnet-lite0", precision=computed_in, device="cpu").digest
    config = {"kind": "image-classifier", "source": "efficientnet-lite0", "network": digest}
    config |= {"classes": ["a", "b"], "contents": ["00", "01"], "method": None}
    config |= {"unknown": 0.08, "unsure": 0.5} | changes
    tensors = {"support": torch.rand(2, 1280), "labels": torch.arange(2)}
    save_tensors(path, tensors, config)
    return path


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_classifier_of_an_earlier_version_keeps_its_precision(tmp_path, precision):
    path = as_saved_earlier(tmp_path / "old.safetensors", precision)
    loaded = protorect.ImageClassifier.load(path, cache=False, device="cpu")
    assert loaded.embedder.origin["precision"] == precision
    loaded.save(tmp_path / "new.safetensors")
    again = protorect.ImageClassifier.load(tmp_path / "new.safetensors", cache=False, device="cpu")
    assert again.embedder.digest == loaded.embedder.digest
    with pytest.raises(DataError, match=r"old.safetensors was made with other .* now in int8"):
        protorect.ImageClassifier.load(path, cache=False, precision="int8", device="cpu")
    with pytest.raises(DataError, match=r"than efficientnet-lite1 has now in float32 or bfloat16"):
        protorect.ImageClassifier.load(path, source="efficientnet-lite1", cache=False, device="cpu")


def test_an_int8_classifier_is_refused_where_int8_cannot_be_computed(tmp_path, monkeypatch):
    path = as_saved_earlier(tmp_path / "c.safetensors", "int8", precision="int8")
    assert protorect.ImageClassifier.load(path, cache=False).embedder.origin["precision"] == "int8"
    monkeypatch.setattr("protorect.embedding.sources.sums_bytes_exactly", lambda: False)
    with pytest.raises(OptionError, match=r"c.safetensors: precision 'int8' cannot be used: this"):
        protorect.ImageClassifier.load(path, cache=False)


def test_cached_features_of_one_precision_are_not_used_for_another(tmp_path, colors):
    networks = [("efficientnet-lite0", p) for p in ("float32", "int8")]
    networks.append(("efficientnet-lite1", "int8"))
    made = [
        protorect.ImageClassifier.from_examples(
            colors.examples, source=source, precision=precision, cache=tmp_path / "cache"
        )
        for source, precision in networks
    ]
    for one, (source, precision) in zip(made, networks, strict=True):
        fresh = protorect.ImageClassifier.from_examples(
            colors.examples, source=source, precision=precision, cache=False
        )
        np.testing.assert_array_equal(one.support, fresh.support)
