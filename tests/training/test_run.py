"""The files of a run, and runs that cannot be resumed."""

import json
import os
import shutil

import pytest
import torch
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from protorect import DataError
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect._utils.files import output_lock
from protorect.backbones.weights import TrainedBackbone
from protorect.training.config import TrainingConfig
from protorect.training.loop import train
from protorect.training.run import Run

TINY = TrainingConfig(epochs=1, steps_per_epoch=1, batch_size=8, validation_episodes=2)


@pytest.fixture(scope="module")
def run(packed, tmp_path_factory):
    return train(packed, tmp_path_factory.mktemp("runs") / "run", TINY)


def test_the_format_of_the_files_is_unchanged(run):
    """Runs of earlier versions are resumed, so names and keys stay."""
    names = {"run.json", "log.jsonl", "last.safetensors", "best.safetensors"}
    assert {path.name for path in run.folder.iterdir()} == names
    document = json.loads((run.folder / "run.json").read_text())
    assert document.keys() == {"config", "data", "versions"}
    assert document["data"].keys() == {"name", "size", "channels", "train"}
    tensors, config = load_tensors(run.last, "training")
    assert config.keys() == {"kind", "epoch", "best"}
    assert {"model.head.weight", "momentum.head.weight"} <= tensors.keys()
    config = load_tensors(run.best, "backbone")[1]
    assert {"backbone", "channels", "size", "mean", "std", "ink_high", "data"} <= config.keys()


def test_a_folder_in_use_is_not_overwritten(run, packed):
    with pytest.raises(DataError, match="is not empty. Give another folder, or --resume"):
        train(packed, run.folder, TINY)


def test_a_run_is_resumed_only_with_its_own_settings(run, packed, tmp_path):
    with pytest.raises(DataError, match="has batch_size = 8, not 16"):
        train(packed, run.folder, TINY.updated({"batch_size": 16}), resume=True)
    with pytest.raises(DataError, match="holds no run to resume"):
        train(packed, tmp_path, TINY, resume=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"config": 1, "data": 2}'])
def test_a_damaged_run_json_is_reported(run, packed, tmp_path, text):
    shutil.copytree(run.folder, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text(text)
    with pytest.raises(DataError, match="run.json is damaged"):
        train(packed, tmp_path / "run", TINY, resume=True)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:500]), "damaged or incomplete"),
        (lambda path: save_tensors(path, {}, {"kind": "estimator"}), "not 'training'"),
        (
            lambda path: save_tensors(
                path, {"model.x": torch.zeros(1)}, {"kind": "training", "epoch": 1, "best": 0.0}
            ),
            "does not fit this run",
        ),
    ],
    ids=["truncated", "another kind", "another network"],
)
def test_a_checkpoint_that_does_not_fit_is_refused(run, packed, tmp_path, damage, message):
    shutil.copytree(run.folder, tmp_path / "run")
    damage(Run(tmp_path / "run").last)
    with pytest.raises(DataError, match=message):
        train(packed, tmp_path / "run", TINY, resume=True)


def test_a_run_of_an_earlier_version_is_resumed(run, packed, tmp_path):
    """Its run.json lacks the settings that were added since, and has earlier names."""
    shutil.copytree(run.folder, tmp_path / "run")
    document = json.loads((run.folder / "run.json").read_text())
    del document["config"]["sizes"]
    del document["config"]["color"]
    document["config"]["colour"] = 0.5
    (tmp_path / "run" / "run.json").write_text(json.dumps(document))
    train(packed, tmp_path / "run", TINY.updated({"colour": 0.5}), resume=True)
    with pytest.raises(DataError, match=r"has color = 0.5, not 0.0"):
        train(packed, tmp_path / "run", TINY, resume=True)


def test_the_best_weights_keep_the_base_classifier(run):
    """The training has one epoch, so the best weights are the last."""
    classifier = TrainedBackbone.load(run.best).base_classifier
    last = load_tensors(run.last)[0]
    assert torch.equal(classifier.weight, last["model.head.weight"])
    assert torch.equal(classifier.scale, last["model.head.scale"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_classifier.weight": torch.zeros(8, 3)}, r"weight is \(8, 3\) instead of \(8, 64\)"),
        ({"base_classifier.weight": torch.zeros(())}, r"weight is \(\) instead of"),
        ({"base_classifier.bias": torch.zeros(8)}, "bias is unknown"),
    ],
)
def test_a_base_classifier_that_does_not_fit_is_refused(run, tmp_path, changes, message):
    tensors, config = load_tensors(run.best)
    save_tensors(tmp_path / "w.safetensors", tensors | changes, config)
    with pytest.raises(
        DataError, match=f"the base classifier of .* does not fit conv64: .*{message}"
    ):
        TrainedBackbone.load(tmp_path / "w.safetensors")


def test_a_log_that_ends_within_a_line_does_not_prevent_resuming(run, packed, tmp_path):
    shutil.copytree(run.folder, tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    resumed = train(packed, tmp_path / "run", TINY, resume=True)
    assert resumed.epochs_logged() == []
    log.write_text('{"epoch": 1}\n{"epoch": "x"}\n')
    with pytest.raises(DataError, match=r"log\.jsonl, line 2, is damaged: epoch is 'x'; .* Remove"):
        train(packed, tmp_path / "run", TINY, resume=True)


@pytest.mark.parametrize(
    ("tensors", "state", "message"),
    [
        ({}, {"epoch": -1}, "epoch is -1; it must be a whole number"),
        ({}, {"epoch": True}, "epoch is True; it must be a whole number"),
        ({}, {"best": None}, "best is None; it must be a finite number"),
        (
            {"momentum.head.weight": torch.zeros(1)},
            {},
            r"momentum.head.weight is \(1,\) instead of",
        ),
        ({"momentum.x": torch.zeros(1)}, {}, "momentum.x is unknown"),
        ({"model.head.scale": torch.tensor(float("nan"))}, {}, "scale has infinite values or NaN"),
    ],
)
def test_a_damaged_checkpoint_is_refused(run, packed, tmp_path, tensors, state, message):
    shutil.copytree(run.folder, tmp_path / "run")
    last = Run(tmp_path / "run").last
    saved, config = load_tensors(last)
    save_tensors(last, saved | tensors, config | state)
    with pytest.raises(DataError, match=message):
        train(packed, tmp_path / "run", TINY, resume=True)


def test_a_loss_that_is_not_finite_names_the_resumed_checkpoint(run, packed, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    last = Run(folder).last
    config = TINY.updated({"epochs": 2})
    document = json.loads((folder / "run.json").read_text())
    document["config"]["epochs"] = 2
    (folder / "run.json").write_text(json.dumps(document))
    saved, state = load_tensors(last)
    huge = {name: torch.full_like(one, 3e38) for name, one in saved.items() if "weight" in name}
    save_tensors(last, saved | huge, state)
    with pytest.raises(DataError, match=r"loss is \w+ in epoch 2, step 1 \(resumed from .*/last\."):
        train(packed, folder, config, resume=True)


CONFIG = {"config": {"epochs": 1, "rates": [[0, 0.1]]}, "data": {"name": "folder", "size": 28}}


@damaged_files
@given(damages(json.dumps(CONFIG).encode()))
def test_a_damaged_run_is_refused(tmp_path, content):
    run = Run(tmp_path)
    read_or_refused(
        tmp_path / "run.json", content, lambda _: run.check_same(TINY, {}), lambda same: not same
    )


def test_a_file_in_place_of_the_run_is_refused(packed, tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(DataError, match="run is a file; give the name of a folder"):
        train(packed, tmp_path / "run", TrainingConfig(epochs=1))
    assert (tmp_path / "run").read_text() == "mine"
    assert os.listdir(tmp_path) == ["run"]


def test_a_second_training_into_one_folder_is_refused(packed, tmp_path):
    with (
        output_lock(tmp_path / "run"),
        pytest.raises(DataError, match="another command, process"),
    ):
        train(packed, tmp_path / "run", TrainingConfig(epochs=1))
