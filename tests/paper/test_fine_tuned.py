"""Transductive fine-tuning of whole networks in `protorect paper`."""

from dataclasses import replace

import pytest

from helpers.packed import pack_noise, save_weights
from protorect import evaluate, sample_episodes
from protorect.cli import main
from protorect.embedding.extract import extract
from protorect.evaluation.fine_tuned import evaluate_fine_tuned
from protorect.methods import PICTURE_METHODS
from protorect.paper.document import experiment_sections
from protorect.paper.experiments import experiment, run
from protorect.paper.feature_sets import FeatureFolder, FeatureSet
from protorect.report.page import Listing

OMNIGLOT = FeatureSet("omniglot", "conv64")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Packed pictures, a run and its features, where the experiments look for them."""
    root = tmp_path_factory.mktemp("paper")
    pack_noise(root / "data/omniglot", 105, classes=5, splits=("val", "test"), dataset="omniglot")
    (root / "runs/omniglot-conv64").mkdir(parents=True)
    save_weights(root / "runs/omniglot-conv64/best.safetensors", data="omniglot")
    (root / "features").mkdir()
    for split in ("val", "test"):
        out = root / "features" / OMNIGLOT.file(split)
        extract(root / "runs/omniglot-conv64", root / "data/omniglot", out, split=split)
    return FeatureFolder(root / "features", root / "data", root / "runs")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One step instead of twenty-five."""
    chosen = PICTURE_METHODS["tft"]
    monkeypatch.setitem(
        PICTURE_METHODS, "tft", replace(chosen, options=replace(chosen.options, steps=1))
    )


def section(record):
    return experiment_sections([record])["tft"].elements


def listings(blocks):
    return {one.caption.partition(":")[0]: one for one in blocks if isinstance(one, Listing)}


def test_whole_networks_are_fine_tuned_on_the_first_episodes(folder):
    record = run(experiment("tft"), folder, episodes=4, fine_tuned=2)
    measured = {(one.method, one.shot): one for one in record.measured}
    assert {method for method, _ in measured} == set(experiment("tft").methods)
    assert (measured["tft", 1].episodes, measured["tft-head", 1].episodes) == (2, 4)
    _, test = folder.load(OMNIGLOT)
    episodes = sample_episodes(test.labels, shot=5, episodes=4)
    chosen = [PICTURE_METHODS["tft"]]
    pictures = folder.pictures(OMNIGLOT)
    expected = evaluate_fine_tuned(pictures, chosen, shot=[1, 5], episodes=episodes.first(2))
    for one in expected:
        assert measured["tft", one.shot].value == pytest.approx(one.accuracy, abs=1e-4)
    head = evaluate(test.features, test.labels, "tft-head", shot=1, episodes=episodes)[0]
    assert measured["tft-head", 1].value == pytest.approx(head.accuracy, abs=1e-4)
    blocks = section(record)
    (table,) = (one for one in blocks if "same episodes" in getattr(one, "caption", ""))
    plain = evaluate(test.features, test.labels, "cspn", shot=[1, 5], episodes=episodes.first(2))
    gains = [tft.minus(cspn) for tft, cspn in zip(expected, plain, strict=True)]
    shown = [f"{gain.mean:+.2f} ± {gain.ci95:.2f}" for gain in gains]
    assert table.rows == [["Omniglot, ConvNet-64", "2", *shown]]
    (details,) = (one for one in blocks if isinstance(one, dict))
    assert details["command"] == "`protorect paper tft --seed 0 --fine-tuned-episodes 2`"
    assert not any("needs the training run" in caption for caption in listings(blocks))


def test_without_run_or_pictures_the_head_is_measured_and_commands_are_shown(folder, tmp_path):
    for without in ({"runs": tmp_path}, {"data": tmp_path}):
        record = run(experiment("tft"), replace(folder, **without), episodes=2)
        assert {one.method for one in record.measured} == {*experiment("tft").methods} - {"tft"}
        shown = listings(section(record))
        (lines,) = (
            one.lines for caption, one in shown.items() if "needs the training run" in caption
        )
        assert [line.split()[1] for line in lines] == ["prepare", "train", "paper"]


def test_the_published_table_is_shown(folder):
    record = run(experiment("tft"), replace(folder, runs=folder.path), episodes=2)
    captions = [getattr(one, "caption", "") for one in section(record)]
    assert any(caption.startswith("Table 5. ") for caption in captions)


def test_the_list_says_what_is_missing(folder, tmp_path, capsys):
    line = ["paper", "tft", "--list", "--features", folder.path, "--runs", folder.runs, "--data"]
    assert main([str(word) for word in (*line, folder.data)]) == 0
    assert "tft on" not in capsys.readouterr().out
    assert main([str(word) for word in (*line, tmp_path)]) == 0
    shown = capsys.readouterr().out
    needed = f"    protorect prepare omniglot OMNIGLOT --out {tmp_path}/omniglot\n"
    assert f"  tft on omniglot-conv64 needs\n{needed}" in shown


def test_a_run_that_did_not_make_the_features(folder, tmp_path, capsys):
    (tmp_path / "omniglot-conv64").mkdir()
    save_weights(tmp_path / "omniglot-conv64/best.safetensors", seed=1, data="omniglot")
    line = ["paper", "tft", "--features", folder.path, "--data", folder.data, "--runs", tmp_path]
    assert main([*map(str, line), "--episodes", "2"]) == 2
    shown = capsys.readouterr().err
    assert "weights differs. Give what `protorect extract` was given." in shown
    assert main([*map(str, line), "--fine-tuned-episodes", "1"]) == 2
    assert "--fine-tuned-episodes is 1; it must be 2 or more." in capsys.readouterr().err
