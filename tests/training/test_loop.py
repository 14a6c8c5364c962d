import functools
import json
import shutil
import time

import pytest
import torch

from helpers.in_processes import CommandProcess
from helpers.packed import pack_noise
from protorect import DataError, OptionError
from protorect._utils.checkpoint import load_tensors
from protorect.backbones.resnet12 import ResNet12
from protorect.backbones.weights import TrainedBackbone
from protorect.cli import main
from protorect.datasets.prepare import prepare
from protorect.training.config import TrainingConfig
from protorect.training.loop import train

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
    """Raised by a report to stop a training at a chosen step."""


def stop_at(epoch, step):
    def report(now):
        if (now.epoch, now.step) == (epoch, step):
            raise StoppedError

    return report


def same_weights(first, second):
    left, right = load_tensors(first)[0], load_tensors(second)[0]
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def log_without_speed(run):
    return [
        {k: v for k, v in line.items() if k != "images_per_second"} for line in run.epochs_logged()
    ]


@pytest.fixture(scope="module")
def whole(packed, tmp_path_factory):
    """A run without interruption."""
    return train(packed, tmp_path_factory.mktemp("runs") / "whole", QUICK)


def test_a_run_learns_and_saves_its_weights_and_log(whole, packed):
    log = whole.epochs_logged()
    assert [line["epoch"] for line in log] == [1, 2, 3]
    assert log[-1]["loss"] < log[0]["loss"]
    assert log[-1]["accuracy"] > 50  # of 8 classes
    assert log[-1]["validation"] > 40  # of 5 novel classes
    assert [line["rate"] for line in log] == [0.1, 0.1, 0.01]
    document = json.loads((whole.folder / "run.json").read_text())
    assert document["config"]["batch_size"] == 32
    assert "torch" in document["versions"]
    config = load_tensors(whole.best, "backbone")[1]
    assert config["validation"] == max(line["validation"] for line in log)
    assert (config["backbone"], config["channels"], config["size"]) == ("conv64", 3, 28)


def test_the_seed_determines_the_weights(whole, packed, tmp_path):
    again = train(packed, tmp_path / "again", QUICK)
    assert same_weights(whole.last, again.last)
    assert log_without_speed(whole) == log_without_speed(again)
    short = QUICK.updated({"epochs": 1})
    runs = [train(packed, tmp_path / str(s), short.updated({"seed": s})) for s in (0, 1)]
    assert not same_weights(runs[0].last, runs[1].last)


@pytest.mark.parametrize(("epoch", "step"), [(0, 2), (1, 1), (2, 4)])
def test_an_interrupted_run_resumes_to_the_same_weights(whole, packed, tmp_path, epoch, step):
    out = tmp_path / "run"
    with pytest.raises(StoppedError):
        train(packed, out, QUICK, report=stop_at(epoch, step))
    resumed = train(packed, out, QUICK, resume=True)
    assert same_weights(whole.last, resumed.last)
    assert same_weights(whole.best, resumed.best)
    assert log_without_speed(whole) == log_without_speed(resumed)


def test_a_finished_run_is_not_changed_by_resume(whole, packed, tmp_path):
    shutil.copytree(whole.folder, tmp_path / "run")
    resumed = train(packed, tmp_path / "run", QUICK, resume=True)
    assert resumed.last.read_bytes() == whole.last.read_bytes()


def test_a_network_with_random_layers_resumes_to_the_same_weights(
    unvalidated, tmp_path, monkeypatch
):
    """DropBlock of resnet12 samples while training, here at its full rate from the start."""
    monkeypatch.setattr("protorect.backbones.dropblock.WARM_UP", 1)
    config = QUICK.updated({"backbone": "resnet12", "epochs": 2, "steps_per_epoch": 1})
    config = config.updated({"batch_size": 4})
    whole = train(unvalidated, tmp_path / "whole", config)
    with pytest.raises(StoppedError):
        train(unvalidated, tmp_path / "run", config, report=stop_at(1, 1))
    resumed = train(unvalidated, tmp_path / "run", config, resume=True)
    assert same_weights(whole.last, resumed.last)


def test_a_run_that_is_killed_resumes_to_the_same_weights(packed, tmp_path, capsys):
    """kill -9 at whatever moment it comes, then --resume."""
    settings = ["epochs=6", "steps_per_epoch=2", "batch_size=8", "validation_episodes=2"]
    options = [word for setting in settings for word in ("--set", setting)]

    def arguments(out, *more):
        return ["train", str(packed), "--out", str(tmp_path / out), *options, *more]

    threads = torch.get_num_threads()
    running = CommandProcess(tmp_path / "killed", arguments("run"), threads=threads)
    while not (tmp_path / "run" / "last.safetensors").exists():
        assert running.exit_code is None, running.wait()
        time.sleep(0.02)
    running.kill()
    running.wait()
    assert main(arguments("run", "--resume")) == 0
    capsys.readouterr()
    assert main(arguments("whole")) == 0
    shown = capsys.readouterr()
    assert len(shown.err.splitlines()) == 6
    assert "epoch 6/6: loss" in shown.err
    assert shown.out.strip() == str(tmp_path / "whole" / "best.safetensors")
    assert same_weights(tmp_path / "run" / "last.safetensors", tmp_path / "whole/last.safetensors")


def test_steps_per_epoch_sets_the_number_of_steps(unvalidated, tmp_path):
    steps = []
    config = QUICK.updated({"epochs": 1, "steps_per_epoch": 9, "batch_size": 8})
    train(unvalidated, tmp_path / "run", config, report=lambda now: steps.append(now.step))
    assert steps == list(range(1, 10))


@pytest.mark.parametrize(
    "changes", [{"precision": "bfloat16"}, {"channels_last": False}, {"label_smoothing": 0.1}]
)
def test_other_precisions_layouts_and_losses_learn_as_well(unvalidated, tmp_path, changes):
    run = train(unvalidated, tmp_path / "run", QUICK.updated({"epochs": 2} | changes))
    assert run.epochs_logged()[-1]["accuracy"] > 50


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method.:DeprecationWarning")  # torch's own
def test_a_compiled_training_is_the_same_training(packed, tmp_path, monkeypatch):
    """Traced and differentiated by torch's compiler; only its C++ code is not generated."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    config = QUICK.updated({"epochs": 1, "steps_per_epoch": 2, "batch_size": 16})
    plain = train(packed, tmp_path / "plain", config)
    compiled = train(packed, tmp_path / "compiled", config.updated({"compile": True}))
    loss = plain.epochs_logged()[0]["loss"]
    assert compiled.epochs_logged()[0]["loss"] == pytest.approx(loss, rel=1e-3)
    for file in ("last", "best"):
        left, right = (load_tensors(getattr(run, file))[0] for run in (plain, compiled))
        assert left.keys() == right.keys()
        for name, tensor in left.items():
            torch.testing.assert_close(right[name], tensor, rtol=0.05, atol=0.02)


@pytest.fixture(scope="module")
def unvalidated(packed, tmp_path_factory):
    """The same pictures without validation classes."""
    source = next(packed.parent.glob("stripes*"))
    out = tmp_path_factory.mktemp("unvalidated") / "packed"
    prepare("folder", source, out, size=28, split=(0.5, 0.0, 0.5), workers=1)
    return out


def test_without_validation_classes_the_last_epoch_is_the_best(unvalidated, tmp_path):
    run = train(unvalidated, tmp_path / "run", QUICK)
    assert all("validation" not in line for line in run.epochs_logged())
    best, last = load_tensors(run.best), load_tensors(run.last)[0]
    assert best[1]["epoch"] == 3
    for name, tensor in TrainedBackbone.load(run.best).backbone.state_dict().items():
        assert torch.equal(last[f"model.backbone.{name}"], tensor)


def test_the_best_epoch_is_the_one_with_the_best_validation(packed, tmp_path, monkeypatch):
    accuracies = iter([50.0, 80.0, 60.0])
    monkeypatch.setattr(
        "protorect.training.validation.Validation.accuracy",
        lambda *_, **__: {"validation": next(accuracies), "validation_ci95": 1.0},
    )
    run = train(packed, tmp_path / "run", QUICK.updated({"steps_per_epoch": 1}))
    assert load_tensors(run.best)[1]["epoch"] == 2


def test_a_diverging_loss_is_reported(packed, tmp_path):
    config = QUICK.updated({"rates": [[0, 1e30]]})
    with pytest.raises(DataError, match=r"the loss is (nan|inf) in epoch 1, step \d"):
        train(packed, tmp_path / "run", config)


def test_early_epochs_see_smaller_pictures(tmp_path, monkeypatch):
    packed = pack_noise(tmp_path / "packed", 16, splits=("train",), side=32)
    seen = []

    def features(self, images):
        seen.append(images.shape[-1])
        return images.mean(dim=(2, 3)).repeat(1, self.dim) * self.blocks[0].shortcut[0].weight.sum()

    monkeypatch.setattr(ResNet12, "features", features)
    sizes = ((0, 28), (1, 32))
    config = TrainingConfig("resnet12", epochs=2, batch_size=16, rates=((0, 0.0),), sizes=sizes)
    train(packed, tmp_path / "run", config)
    assert seen == [28, 32]


def test_sizes_are_checked_before_the_run_is_written(packed, tmp_path):
    with pytest.raises(OptionError, match="conv64 takes pictures of one size only"):
        train(packed, tmp_path / "run", QUICK.updated({"sizes": [[0, 28]]}))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (({"epochs": 3},), {}, "config must be a TrainingConfig, .*; got dict"),
        ((QUICK,), {"device": "abacus"}, "device 'abacus' cannot be used"),
        ((QUICK,), {"device": "meta"}, "device 'meta' cannot be used: it holds no values"),
    ],
)
def test_wrong_arguments_are_refused_before_a_file_is_written(
    packed, tmp_path, arguments, options, message
):
    with pytest.raises(OptionError, match=message):
        train(packed, tmp_path / "run", *arguments, **options)
    assert not (tmp_path / "run").exists()
