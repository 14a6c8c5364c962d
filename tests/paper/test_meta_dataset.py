"""Every command that `protorect paper --list` names for Meta-Dataset, run to its end."""

import json
import shlex
from functools import cache

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.pictures import encoded, pixels
from protorect._utils.checkpoint import save_tensors
from protorect.backbones.registry import build
from protorect.cli import main
from protorect.datasets.catalogue import DATASETS
from protorect.datasets.splits import SPLITS, ClassSplit, known_split
from protorect.paper.experiments import EXPERIMENTS, META_DATASET
from protorect.paper.published import published_tables
from protorect.paper.record import load_records, measured_by_key

EACH = 20  # pictures of a class: five shots and fifteen queries
CLASSES = 5
SOURCES = list(dict.fromkeys(one.dataset for one in EXPERIMENTS[META_DATASET].feature_sets))


def small(name):
    """At most five classes of each split; ILSVRC's published split is not in the package."""
    full = known_split(name) if name in SOURCES else None
    return full and ClassSplit(*(full[split][:CLASSES] for split in SPLITS))


@cache
def picture(seed, suffix):
    kind = {".jpg": "JPEG", ".png": "PNG", ".ppm": "PPM"}[suffix]
    return encoded(Image.fromarray(pixels(seed, 30, 30)), kind)


def write_classes(root, folders, name=lambda number: f"{number}.jpg", suffix=".jpg"):
    for seed, folder in enumerate(folders):
        (root / folder).mkdir(parents=True)
        for number in range(EACH):
            data = picture((EACH * seed + number) % 60, suffix)
            (root / folder / name(number)).write_bytes(data)


def write_source(root, dataset):
    """A small folder of this data set in the layout in which it is distributed."""
    if dataset == "meta-ilsvrc-2012":
        names = [f"n{number:08}" for number in range(3 * CLASSES)]
        write_classes(root, names)
        split = {one: names[i * CLASSES :][:CLASSES] for i, one in enumerate(SPLITS)}
        (root.parent / "ILSVRC_2012_SPLITS.json").write_text(json.dumps(split))
        return
    names = sorted(small(dataset).names)
    if dataset == "meta-omniglot":
        parts = [f"images_{('background', 'evaluation')[i % 2]}/{n}" for i, n in enumerate(names)]
        write_classes(root, parts, lambda number: f"{number}.png", ".png")
    elif dataset == "meta-traffic-sign":
        folders = [f"Final_Training/Images/{number:05}" for number in range(len(names))]
        write_classes(root, folders, lambda i: f"{i:05}_00000.ppm", ".ppm")
    elif dataset in ("meta-cu-birds", "meta-dtd"):
        write_classes(root / "images", names)
    else:
        write_classes(root, [name.replace("/", "_") for name in names])


def listed(capsys, *options):
    """The commands that `protorect paper meta-dataset --list` prints."""
    assert main(["paper", META_DATASET, "--list", *options]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    return list(dict.fromkeys(line for line in lines if line.startswith("protorect ")))


def as_arguments(command):
    program, *arguments = shlex.split(command)
    assert program == "protorect"
    return [*arguments, "--workers", "1"] if arguments[0] == "prepare" else arguments


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A folder with all ten sources, named as in the commands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("protorect.datasets.catalogue.known_split", small)
    for dataset in SOURCES:
        write_source(tmp_path / dataset.upper().replace("-", "_"), dataset)


def save_color_weights(path, **changes):
    """Weights of an untrained network for small color pictures."""
    torch.manual_seed(0)
    card = {"kind": "backbone", "backbone": "conv64", "channels": 3, "size": 28}
    card |= {"mean": [0.5] * 3, "std": [0.3] * 3} | changes
    save_tensors(path, build("conv64", channels=3, size=28).state_dict(), card)


def measure(capsys, *options):
    run = ["paper", META_DATASET, *options, "--episodes", "5", "--results", "results"]
    assert main(run) == 0
    assert capsys.readouterr().err.count("no features") == 0
    [record] = load_records("results")
    return record


def test_every_listed_command_runs_for_a_network_of_the_user(sources, capsys):
    save_color_weights("my network.safetensors", data="mini-imagenet")
    network = ["--network", "my network.safetensors"]
    commands = listed(capsys, *network)
    assert sum(command.startswith("protorect prepare") for command in commands) == len(SOURCES)
    for command in commands:
        assert main(as_arguments(command)) == 0, command
    capsys.readouterr()
    assert listed(capsys, *network) == []
    record = measure(capsys, *network)
    assert {one.dataset for one in record.measured} == set(SOURCES)
    assert {one.backbone for one in record.measured} == {"my-network"}
    assert {one.trained_on for one in record.measured} == {"mini-imagenet"}
    files = [one["file"] for one in record.features]
    assert len(files) == len(set(files)) == 2 * len(SOURCES) - 1
    [signs] = [one for one in record.features if one["data"] == "meta-traffic-sign"]
    assert signs["split"] == "test"
    signs = [one for one in record.measured if one.dataset == "meta-traffic-sign"]
    assert {one.z is None for one in signs if one.method == "bd-cspn"} == {False}
    with np.load("features/meta-traffic-sign-my-network-test.npz") as file:
        assert len(np.unique(file["groups"])) == CLASSES * EACH


def test_a_network_trained_as_the_papers_is_compared_with_it(sources, capsys):
    """Ranks are counted only for a network that was trained on ILSVRC-2012."""
    [row] = [row for row in published_tables()[14].rows if row.key.dataset == "meta-dtd"]
    for data, compared in (("mini-imagenet", False), ("meta-ilsvrc-2012", True)):
        save_color_weights(f"{data}.safetensors", data=data)
        network = ["--network", f"{data}.safetensors"]
        for command in listed(capsys, *network):
            if "meta-dtd" in command and not ("prepare" in command and compared):
                assert main(as_arguments(command)) == 0
        record = measure(capsys, *network)
        measured = measured_by_key([record])
        assert ((row.key._replace(system="bd-cspn"), 5) in measured) == compared


def test_the_default_networks_have_the_same_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("efficientnet-lite0", "mini-conv64"):
        commands = listed(capsys, "--network", name)
        assert set(commands) <= set(listed(capsys))
        assert f"protorect extract {name} data/meta-traffic-sign --split test" in str(commands)
        assert not any("traffic-sign" in one and "--split val" in one for one in commands)
    assert "META_ILSVRC_2012 --split ILSVRC_2012_SPLITS.json" in str(commands)


def test_every_source_is_known():
    assert set(SOURCES) <= set(DATASETS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([META_DATASET, "--network", "a/net", "--network", "b/net"], "have the same name, net"),
        (["omniglot", "--network", "net"], "--network is for the experiment meta-dataset"),
        ([META_DATASET, "--network", "/"], "network '/' has no name"),
    ],
)
def test_bad_networks_are_one_sentence(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["paper", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
