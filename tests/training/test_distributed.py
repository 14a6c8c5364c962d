"""Two processes give what one gives with the same batches."""

import copy
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from helpers.in_processes import in_two_processes, start_two
from protorect import OptionError
from protorect._utils.checkpoint import load_tensors
from protorect.backbones.cosine_classifier import CosineClassifier
from protorect.backbones.dropblock import WARM_UP, DropBlock
from protorect.training import TrainingConfig, train
from protorect.training.distributed import Processes, _own_device, joined
from protorect.training.run import Run

UNEVEN = TrainingConfig(
    epochs=2,
    batch_size=37,  # batches of 39 and 38, halves of 19 and 20
    rates=((0, 0.1), (1, 0.01)),
    label_smoothing=0.1,
    validation_episodes=10,
    crop_padding=2,
    flip=True,
    smallest_scale=0.8,
    colour=0.2,
    precision="float32",
)
SETTINGS = ["epochs=2", "batch_size=37", "validation_episodes=5", "precision=float32"]
WORDS = [word for setting in SETTINGS for word in ("--set", setting)]


class StoppedError(Exception):
    """Thrown by a report to stop a training."""


@contextmanager
def float64():
    """Rounding grows from step to step; in float64 there is too little of it to hide an error."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def train_twice(processes, packed, out):
    """A training left alone, and one stopped in its second epoch and resumed."""

    def stop(now):
        if (now.epoch, now.step) == (1, 2):
            raise StoppedError

    with float64():
        train(packed, out / "whole", UNEVEN, processes=processes)
        with pytest.raises(StoppedError):
            train(packed, out / "resumed", UNEVEN, processes=processes, report=stop)
        train(packed, out / "resumed", UNEVEN, processes=processes, resume=True)


@pytest.fixture(scope="module")
def trained(packed, tmp_path_factory):
    """What one process and two made of the same configuration."""
    out = tmp_path_factory.mktemp("trained")
    train_twice(Processes(), packed, out / "one")
    in_two_processes(train_twice, packed, out / "two")
    return out


@pytest.mark.parametrize("run", ["whole", "resumed"])
def test_two_processes_train_as_one(trained, run):
    one, two = Run(trained / "one" / run), Run(trained / "two" / run)
    for left, right in zip(one.epochs_logged(), two.epochs_logged(), strict=True):
        for name in ("epoch", "loss", "accuracy", "rate", "validation"):
            assert right[name] == pytest.approx(left[name], rel=1e-9)
    for file in ("last", "best"):
        left, right = (load_tensors(getattr(run, file))[0] for run in (one, two))
        assert left.keys() == right.keys()
        for name, tensor in left.items():
            torch.testing.assert_close(right[name], tensor, rtol=1e-8, atol=1e-9)


def test_two_processes_resume_to_the_same_weights(trained):
    runs = (Run(trained / "two" / name) for name in ("whole", "resumed"))
    whole, resumed = (load_tensors(run.last)[0] for run in runs)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def compare_layers(processes):
    """One step of a network with the layers that look at whole batches."""
    torch.manual_seed(3)
    drop = DropBlock(rate=0.4, block=2)
    drop.batches.fill_(WARM_UP)
    layers = [nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), drop, nn.Flatten()]
    alone = nn.Sequential(*layers, CosineClassifier(6 * 5 * 5, 4)).double()
    model = copy.deepcopy(alone)
    shared = processes.shared(model)
    images, labels = 3 + torch.randn(5, 3, 7, 7).double(), torch.tensor([0, 1, 2, 3, 0])
    part = processes.part(5)

    torch.manual_seed(4)
    expected = alone(images)
    cross_entropy(expected, labels).backward()
    torch.manual_seed(4)
    found = shared(images[part])
    (cross_entropy(found, labels[part]) * len(found) / 5).backward()
    assert (alone[3].factors(torch.Size((5, 6, 5, 5)), images.device) == 0).any()
    torch.testing.assert_close(found, expected[part])
    for right, left in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(right.grad, left.grad)
    for right, left in zip(model.buffers(), alone.buffers(), strict=True):
        torch.testing.assert_close(right, left)
        assert not right.requires_grad
    torch.testing.assert_close(model.eval()(images), alone.eval()(images))
    assert model.state_dict().keys() == alone.state_dict().keys()


def test_batch_norm_and_drop_block_look_at_the_whole_batch():
    in_two_processes(compare_layers)


def torchrun(*words):
    command = [Path(sys.executable).parent / "torchrun", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "protorect", "train", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_torchrun_starts_the_command(packed, tmp_path):
    done = torchrun(packed, "--out", tmp_path / "run", *WORDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(tmp_path / "run" / "best.safetensors")]
    assert done.stderr.count("epoch 2/2: loss") == 1
    assert len(Run(tmp_path / "run").epochs_logged()) == 2
    again = torchrun(packed, "--out", tmp_path / "run", *WORDS)
    assert again.returncode == 1  # torchrun's own
    assert again.stderr.count("protorect: ") == 1
    assert "protorect: " + str(tmp_path / "run") + " is not empty. Give another" in again.stderr


def told_by(running):
    return [process.communicate(timeout=300) for process in running]


def test_an_error_in_one_process_ends_both_with_one_sentence(packed, tmp_path):
    words = ("--out", tmp_path / "run", *WORDS)
    running = start_two(("train", packed, *words), ("train", tmp_path / "nothing", *words))
    told = told_by(running)
    assert [process.returncode for process in running] == [1, 2]
    assert told[0][1] == ""
    assert told[1][1].startswith("protorect: ")
    assert told[1][1].count("\n") == 1


def test_a_process_that_is_killed_ends_the_other(packed, tmp_path):
    words = ("train", packed, "--out", tmp_path / "run", *WORDS, "--set", "epochs=1000")
    running = start_two(words, words)
    while not (tmp_path / "run" / "last.safetensors").exists():
        assert [process.poll() for process in running] == [None, None], told_by(running)
        time.sleep(0.05)
    running[1].send_signal(signal.SIGKILL)
    told = told_by(running)
    assert running[0].returncode == 2
    assert "protorect: process 1 of 2 lost the others" in told[0][1]
    assert "Traceback" not in told[0][1]


def test_one_process_has_nothing_to_share():
    alone, model = Processes(), nn.Linear(1, 1)
    with joined("cpu") as (processes, device):
        assert (processes, device) == (alone, torch.device("cpu"))
        assert not torch.distributed.is_initialized()
    assert alone.first
    assert alone.part(7) == slice(0, 7)
    assert alone.shared(model) is model
    assert alone.summed(1.5, 2) == (1.5, 2)


@pytest.mark.parametrize(("n", "count"), [(7, 2), (8, 3), (3, 3)])
def test_the_parts_are_the_batch_and_about_equal(n, count):
    parts = [list(range(n))[Processes(rank, count).part(n)] for rank in range(count)]
    assert [row for part in parts for row in part] == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_more_processes_than_pictures_in_a_batch_are_refused(packed, tmp_path):
    with pytest.raises(OptionError, match="38 processes cannot share batches of 37 pictures"):
        train(packed, tmp_path / "run", UNEVEN, processes=Processes(0, 38))
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_joined_is_told(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(OptionError, match="cannot be met: .* with: torchrun"), joined("cpu"):
        pass
    with pytest.raises(OptionError, match="device 'abacus' cannot be used"), joined("abacus"):
        pass
    with pytest.raises(OptionError, match="several processes take one each: use cuda"):
        _own_device(torch.device("cuda:1"))
