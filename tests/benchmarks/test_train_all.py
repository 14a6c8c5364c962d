"""The queue of trainings, on a data set of noise with a recipe of two epochs."""

import json

import pytest

from benchmarks import train_all
from helpers.packed import pack_noise
from protorect.cli import main

NAME = "omniglot-conv128"
FILES = (
    f"runs/{NAME}/best.safetensors",
    f"features/{NAME}-val.npz",
    f"features/{NAME}-test.npz",
    f"results/{NAME}.json",
    f"results/training/{NAME}.json",
)


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """The commands that are run, in this process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    recipe = 'backbone = "conv128"\nepochs = 2\nbatch_size = 64\nvalidation_episodes = 2\n'
    (tmp_path / "configs" / f"{NAME}.toml").write_text(recipe)
    made: list[list[str]] = []
    monkeypatch.setattr(train_all.os, "nice", lambda _: None)
    monkeypatch.setattr(train_all, "METHODS", ("cspn", "bd-cspn"))
    monkeypatch.setattr(
        train_all, "_protorect", lambda words: made.append(words) or not main(words)
    )
    return made


def packed(folder):
    return pack_noise(
        folder / "data/omniglot",
        105,
        classes=5,
        splits=("train", "val", "test"),
        dataset="omniglot",
    )


def queue(*more):
    return train_all.main([NAME, "--results", "results", *more])


def test_what_is_missing_is_done_once(tmp_path, commands, capsys):
    packed(tmp_path)
    assert queue() == 0
    assert [words[0] for words in commands] == ["train", "extract", "extract", "evaluate"]
    assert all((tmp_path / name).exists() for name in FILES)
    assert len(json.loads((tmp_path / FILES[-1]).read_text())["log"]) == 2
    commands.clear()
    assert queue() == 0
    assert commands == []
    (tmp_path / FILES[2]).unlink()
    assert queue() == 0
    assert [words[0] for words in commands] == ["extract"]


def test_an_interrupted_run_is_resumed(tmp_path, commands):
    packed(tmp_path)
    run = tmp_path / "runs" / NAME
    recipe = ["--config", f"configs/{NAME}.toml", "--out", str(run)]
    assert main(["train", "data/omniglot", *recipe]) == 0
    for name in ("best.safetensors", "last.safetensors"):
        (run / name).unlink()
    lines = (run / "log.jsonl").read_text().splitlines()
    (run / "log.jsonl").write_text(lines[0] + "\n")
    assert queue() == 0
    assert commands[0][-1] == "--resume"
    assert (run / "log.jsonl").read_text().splitlines()[0].startswith('{"epoch": 1')
    assert train_all.finished(run)


def test_a_network_that_fails_is_named(tmp_path, commands, capsys):
    assert queue() == 1
    shown = capsys.readouterr().err
    assert f"{NAME}: give --omniglot PICTURES" in shown
    assert queue("--omniglot", "nowhere") == 1
    assert [words[:3] for words in commands] == [["prepare", "omniglot", "nowhere"]]
    assert f"failed: {NAME}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        train_all.main(["omniglot-conv12"])


def test_no_network_is_trained_without_its_recipe(tmp_path, commands, capsys):
    packed(tmp_path)
    (tmp_path / "configs" / f"{NAME}.toml").unlink()
    assert queue() == 1
    assert commands == []
    assert f"{NAME}: the working folder has no configs/" in capsys.readouterr().err


def test_every_network_of_the_queue_has_a_recipe_or_is_in_the_package():
    recipes = {path.stem for path in (train_all.RESULTS.parent / "configs").glob("*.toml")}
    for features in train_all.QUEUE:
        seed = features.run.startswith("seed")
        assert (features._replace(run="") if seed else features).recipe in recipes
