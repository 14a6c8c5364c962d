"""Event files beside the log, and the error where the package for them is missing."""

import json
import sys

import pytest

from protorect.cli import main
from protorect.training.config import TrainingConfig
from protorect.training.run import Run
from protorect.training.tensorboard import event_files


def read(folder):
    """Values by name and epoch, and the text of the configuration."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(str(folder)).Reload()
    names = events.Tags()["scalars"]
    values = {name: {event.step: event.value for event in events.Scalars(name)} for name in names}
    [text] = events.Tensors("configuration/text_summary")[:1]
    return values, make_ndarray(text.tensor_proto).item().decode()


def test_the_events_are_the_log(packed, tmp_path, capsys):
    run = tmp_path / "run"
    settings = ["epochs=2", "batch_size=64", "validation_episodes=5", "steps_per_epoch=1"]
    words = [word for setting in settings for word in ("--set", setting)]
    assert main(["train", str(packed), "--out", str(run), *words, "--tensorboard"]) == 0
    values, text = read(run / "tensorboard")
    log = Run(run).epochs_logged()
    names = {"loss", "accuracy", "rate", "images_per_second", "validation", "validation_ci95"}
    assert values.keys() == names
    for name in names:
        expected = {line["epoch"]: pytest.approx(line[name], rel=1e-6) for line in log}
        assert values[name] == expected
    assert "| batch_size | 64 |" in text
    assert json.loads((run / "run.json").read_text())["config"]["batch_size"] == 64


def test_an_epoch_written_again_replaces_the_first(tmp_path):
    def write(*lines):
        with event_files(tmp_path, TrainingConfig()) as record:
            for epoch, loss in lines:
                record({"epoch": epoch, "loss": loss})

    write((1, 5.0), (2, 4.0), (3, 3.0))
    write((2, 2.0))
    assert read(tmp_path)[0] == {"loss": {1: 5.0, 2: 2.0}}


def test_nothing_is_written_before_the_first_epoch(tmp_path):
    with event_files(tmp_path / "events", TrainingConfig()):
        assert not (tmp_path / "events").exists()


def test_without_the_package_nothing_starts(packed, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert main(["train", str(packed), "--out", str(tmp_path / "run"), "--tensorboard"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("protorect: --tensorboard needs")
    assert "pip install 'protorect[tensorboard]'" in error
    assert not (tmp_path / "run").exists()
