import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from protorect import DataError
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.datasets.prepare import prepare
from protorect.training import TrainingConfig, train
from protorect.training.batches import batch_rows
from protorect.training.config import updated
from protorect.training.run import Run

COMMAND = Path(sys.executable).parent / "protorect"
QUICK = TrainingConfig(
    epochs=3,
    batch_size=32,
    rates=((0, 0.1), (2, 0.01)),
    validation_episodes=30,
    crop_padding=2,
    flip=True,
    precision="float32",
)


class StoppedError(Exception):
    """Thrown by a report to stop a training at a chosen moment."""


def stop_at(epoch, step):
    def report(now):
        if (now.epoch, now.step) == (epoch, step):
            raise StoppedError

    return report


def same_weights(first, second):
    left, right = load_tensors(first)[0], load_tensors(second)[0]
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def lines(run):
    return [
        {k: v for k, v in line.items() if k != "images_per_second"} for line in run.epochs_logged()
    ]


@pytest.fixture(scope="module")
def whole(packed, tmp_path_factory):
    """A run that nothing interrupted."""
    return train(packed, tmp_path_factory.mktemp("runs") / "whole", QUICK)


def test_a_run_learns_and_leaves_what_is_needed(whole, packed):
    log = whole.epochs_logged()
    assert [line["epoch"] for line in log] == [1, 2, 3]
    assert log[-1]["loss"] < log[0]["loss"]
    assert log[-1]["accuracy"] > 50  # of 8 classes
    assert log[-1]["validation"] > 40  # of 5 classes never seen
    assert [line["rate"] for line in log] == [0.1, 0.1, 0.01]
    held = json.loads((whole.folder / "run.json").read_text())
    assert held["config"]["batch_size"] == 32
    assert "torch" in held["versions"]
    card = load_tensors(whole.best, "backbone")[1]
    assert card["validation"] == max(line["validation"] for line in log)
    assert (card["backbone"], card["channels"], card["size"]) == ("conv64", 3, 28)


def test_the_seed_decides(whole, packed, tmp_path):
    again = train(packed, tmp_path / "again", QUICK)
    assert same_weights(whole.last, again.last)
    assert lines(whole) == lines(again)
    other = train(packed, tmp_path / "other", updated(QUICK, {"seed": 1}))
    assert not same_weights(whole.last, other.last)


@pytest.mark.parametrize(("epoch", "step"), [(0, 2), (1, 1), (2, 4)])
def test_an_interrupted_run_goes_on_to_the_same_weights(whole, packed, tmp_path, epoch, step):
    out = tmp_path / "run"
    with pytest.raises(StoppedError):
        train(packed, out, QUICK, report=stop_at(epoch, step))
    resumed = train(packed, out, QUICK, resume=True)
    assert same_weights(whole.last, resumed.last)
    assert same_weights(whole.best, resumed.best)
    assert lines(whole) == lines(resumed)


def test_a_finished_run_resumed_is_left_as_it_is(whole, packed, tmp_path):
    shutil.copytree(whole.folder, tmp_path / "run")
    resumed = train(packed, tmp_path / "run", QUICK, resume=True)
    assert resumed.last.read_bytes() == whole.last.read_bytes()


def test_a_network_that_draws_for_itself_resumes_exactly(packed, tmp_path):
    config = updated(QUICK, {"backbone": "resnet12", "epochs": 2, "steps_per_epoch": 2})
    config = updated(config, {"batch_size": 4, "validation_episodes": 2})
    whole = train(packed, tmp_path / "whole", config)
    with pytest.raises(StoppedError):
        train(packed, tmp_path / "run", config, report=stop_at(1, 1))
    resumed = train(packed, tmp_path / "run", config, resume=True)
    assert same_weights(whole.last, resumed.last)


def test_killed_by_the_system_it_goes_on_too(packed, tmp_path):
    """kill -9 at whatever moment it comes, then --resume: the weights of a run left alone."""
    settings = ["epochs=4", "batch_size=32", "validation_episodes=20", "precision=float32"]
    words = [word for setting in settings for word in ("--set", setting)]

    def command(out, *more):
        return [COMMAND, "train", packed, "--out", out, *words, *more]

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(
        command(tmp_path / "run"), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not (tmp_path / "run" / "last.safetensors").exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    time.sleep(0.1)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    for out, more in ((tmp_path / "run", ["--resume"]), (tmp_path / "whole", [])):
        done = subprocess.run(
            command(out, *more), env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 4
    assert "epoch 4/4: loss" in done.stderr
    assert done.stdout.strip() == str(tmp_path / "whole" / "best.safetensors")
    assert same_weights(tmp_path / "run" / "last.safetensors", tmp_path / "whole/last.safetensors")


def test_steps_per_epoch_may_pass_over_the_pictures_many_times(packed, tmp_path):
    steps = []
    config = updated(QUICK, {"epochs": 1, "steps_per_epoch": 9, "batch_size": 64})
    train(packed, tmp_path / "run", config, report=lambda now: steps.append(now.step))
    assert steps == list(range(1, 10))


@pytest.mark.parametrize(
    "changes", [{"precision": "bfloat16"}, {"channels_last": False}, {"label_smoothing": 0.1}]
)
def test_other_ways_of_computing_learn_as_well(packed, tmp_path, changes):
    run = train(packed, tmp_path / "run", updated(QUICK, changes))
    assert run.epochs_logged()[-1]["accuracy"] > 50


def _divided(packed, tmp_path, fractions):
    """The same pictures, divided otherwise."""
    source = next(packed.parent.glob("stripes*"))
    out = tmp_path / "packed"
    prepare("folder", source, out, size=28, split=fractions, workers=1)
    return out


def test_without_validation_classes_the_last_epoch_is_kept(packed, tmp_path):
    run = train(_divided(packed, tmp_path, (0.5, 0.0, 0.5)), tmp_path / "run", QUICK)
    assert all("validation" not in line for line in run.epochs_logged())
    best, last = load_tensors(run.best), load_tensors(run.last)[0]
    assert best[1]["epoch"] == 3
    assert all(torch.equal(last[f"model.backbone.{name}"], t) for name, t in best[0].items())


def test_few_validation_classes_give_smaller_episodes(packed, tmp_path):
    run = train(_divided(packed, tmp_path, (0.5, 1 / 6, 1 / 3)), tmp_path / "run", QUICK)
    assert 100 / 3 < run.epochs_logged()[-1]["validation"] <= 100  # of three classes


def test_a_folder_in_use_is_not_overwritten(whole, packed):
    with pytest.raises(DataError, match="is not empty. Give another folder, or --resume"):
        train(packed, whole.folder, QUICK)


def test_a_run_is_resumed_with_what_it_was_started_with(whole, packed, tmp_path):
    with pytest.raises(DataError, match="has batch_size = 32, not 16"):
        train(packed, whole.folder, updated(QUICK, {"batch_size": 16}), resume=True)
    with pytest.raises(DataError, match="holds no run to resume"):
        train(packed, tmp_path, QUICK, resume=True)


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
)
def test_a_checkpoint_that_is_not_this_runs_is_refused(whole, packed, tmp_path, damage, message):
    shutil.copytree(whole.folder, tmp_path / "run")
    damage(Run(tmp_path / "run").last)
    with pytest.raises(DataError, match=message):
        train(packed, tmp_path / "run", QUICK, resume=True)


def test_a_loss_that_runs_away_is_told(packed, tmp_path):
    config = updated(QUICK, {"rates": [[0, 1e30]]})
    with pytest.raises(DataError, match=r"the loss is (nan|inf) in epoch 1, step \d"):
        train(packed, tmp_path / "run", config)


def test_every_picture_is_seen_once_an_epoch():
    rows = list(batch_rows(100, QUICK, epoch=0))
    assert sorted(np.concatenate(rows)) == list(range(100))
    other = list(batch_rows(100, QUICK, epoch=1))
    assert not np.array_equal(rows[0], other[0])
