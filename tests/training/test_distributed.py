"""Training in two processes: the same weights in both, and errors that end both."""

import copy
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from helpers.in_processes import in_two_processes, start_two
from protorect import OptionError
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.training.config import TrainingConfig
from protorect.training.distributed import Processes, _device_of_process, process_group
from protorect.training.loop import train
from protorect.training.run import Run

UNEVEN = TrainingConfig(
    epochs=2,
    batch_size=37,  # batches of 39 and 38, halves of 19 and 20
    rates=((0, 0.1), (1, 0.01)),
    validation_episodes=10,
    crop_padding=2,
    flip=True,
    precision="float32",
)
SETTINGS = ["epochs=2", "steps_per_epoch=1", "batch_size=8", "validation_episodes=2"]
OPTIONS = [word for setting in SETTINGS for word in ("--set", setting)]


class StoppedError(Exception):
    """Raised by a report to stop a training."""


def train_twice(processes, packed, out):
    """Train without interruption, then again with an interruption in the second epoch.

    Each process saves the weights it ends with.
    """

    def stop(now):
        if (now.epoch, now.step) == (1, 2):
            raise StoppedError

    models, wrap = [], Processes.wrap
    Processes.wrap = lambda self, model: models.append(model) or wrap(self, model)
    train(packed, out / "whole", UNEVEN, processes=processes)
    weights = dict(models[0].named_parameters())
    save_tensors(out / f"rank {processes.rank}.safetensors", weights, {})
    with pytest.raises(StoppedError):
        train(packed, out / "resumed", UNEVEN, processes=processes, report=stop)
    train(packed, out / "resumed", UNEVEN, processes=processes, resume=True)
    check_gradients(processes)


def check_gradients(processes):
    """The gradients of parts of unequal size, weighted as in the loop, are those of the batch."""
    torch.manual_seed(3)
    alone = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(150, 4)).double()
    model = copy.deepcopy(alone)
    images, labels = torch.randn(5, 3, 7, 7).double(), torch.tensor([0, 1, 2, 3, 0])
    cross_entropy(alone(images), labels).backward()
    part, shared = processes.part(5), processes.wrap(model)
    loss = cross_entropy(shared(images[part]), labels[part])
    share = len(labels[part]) / 5
    (loss * share * processes.count).backward()
    for right, left in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(right.grad, left.grad)
    expected = cross_entropy(alone(images), labels).item()
    assert processes.sum(loss.item() * share) == (pytest.approx(expected),)


@pytest.fixture(scope="module")
def trained(packed, tmp_path_factory):
    """The folder with the runs of two processes."""
    out = tmp_path_factory.mktemp("trained")
    in_two_processes(train_twice, packed, out)
    return out


def test_all_processes_end_with_the_same_weights_and_the_first_saves_them(trained):
    first, second = (load_tensors(trained / f"rank {rank}.safetensors")[0] for rank in (0, 1))
    saved = load_tensors(Run(trained / "whole").last)[0]
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name])
        assert torch.equal(tensor, saved[f"model.{name}"])


def test_two_processes_learn(trained):
    log = Run(trained / "whole").epochs_logged()
    assert [line["epoch"] for line in log] == [1, 2]
    assert log[1]["loss"] < 0.7 * log[0]["loss"]
    assert log[1]["accuracy"] > 50  # of 8 classes
    assert log[1]["validation"] > 60  # of 5 classes


def test_two_processes_resume_to_the_same_weights(trained):
    runs = (Run(trained / name) for name in ("whole", "resumed"))
    whole, resumed = (load_tensors(run.last)[0] for run in runs)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_torchrun_starts_the_command(packed, tmp_path):
    command = [Path(sys.executable).parent / "torchrun", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "protorect", "train", packed, "--out", tmp_path / "run", *OPTIONS]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(tmp_path / "run" / "best.safetensors")]
    assert done.stderr.count("epoch 2/2: loss") == 1
    assert len(Run(tmp_path / "run").epochs_logged()) == 2


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_in_one_process_ends_both_with_one_message(packed, tmp_path, failing):
    options = ("--out", tmp_path / "run", *OPTIONS)
    commands = [("train", packed, *options), ("train", packed, *options)]
    commands[failing] = ("train", tmp_path / "nothing", *options)
    running = start_two(tmp_path, *commands)
    errors = [process.wait()[1] for process in running]
    assert [process.exit_code for process in running] == ([2, 1] if failing == 0 else [1, 2])
    assert errors[failing].startswith("protorect: ")
    assert errors[failing].count("\n") == 1
    if failing == 1:  # where the first one ends, torch itself warns of the lost connection
        assert errors[0] == ""
    assert "protorect: " not in errors[1 - failing]


def test_a_process_that_is_killed_ends_the_other(packed, tmp_path):
    command = ("train", packed, "--out", tmp_path / "run", *OPTIONS, "--set", "epochs=1000")
    first, second = start_two(tmp_path, command, command)
    while not (tmp_path / "run" / "last.safetensors").exists():
        assert first.exit_code is None, first.wait()
        assert second.exit_code is None, second.wait()
        time.sleep(0.05)
    second.kill()
    error = first.wait()[1]
    assert first.exit_code == 2
    assert "protorect: process 1 of 2 lost the connection to another one" in error
    assert "Traceback" not in error


def test_a_single_process_shares_nothing():
    single, model = Processes(), nn.Linear(1, 1)
    with process_group("cpu") as (processes, device):
        assert (processes, device) == (single, torch.device("cpu"))
        assert not torch.distributed.is_initialized()
    assert single.first
    assert single.part(7) == slice(0, 7)
    assert single.wrap(model) is model
    assert single.sum(1.5, 2) == (1.5, 2)


@pytest.mark.parametrize(("n", "count"), [(7, 2), (8, 3), (3, 3)])
def test_the_parts_are_the_batch_and_about_equal(n, count):
    parts = [list(range(n))[Processes(rank, count).part(n)] for rank in range(count)]
    assert [row for part in parts for row in part] == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_more_processes_than_pictures_in_a_batch_are_refused(packed, tmp_path):
    with pytest.raises(OptionError, match="38 processes cannot share batches of 37 pictures"):
        train(packed, tmp_path / "run", UNEVEN, processes=Processes(0, 38))
    assert not (tmp_path / "run").exists()


def test_processes_or_devices_that_cannot_be_used_are_reported(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(OptionError, match="cannot be reached: .* with: torchrun"):
        process_group("cpu").__enter__()
    with pytest.raises(OptionError, match="device 'abacus' cannot be used: .* Try cpu"):
        process_group("abacus").__enter__()
    with pytest.raises(OptionError, match="several processes take one each: use cuda"):
        _device_of_process(torch.device("cuda:1"))
