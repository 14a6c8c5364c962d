"""Fine-tuned networks on episodes of the pictures behind features, and `evaluate` with them."""

import json
from pathlib import Path

import numpy as np
import pytest

from helpers.packed import pack_noise, save_weights
from protorect import DataError, OptionError, evaluate, load_features, sample_episodes
from protorect.cli import main
from protorect.embedding.extract import extract
from protorect.evaluation.fine_tuned import Pictures, evaluate_fine_tuned
from protorect.methods import PICTURE_METHODS

TFT = PICTURE_METHODS["tft"]
QUICK = TFT.with_options(steps=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Packed noise, weights, and the features they make."""
    folder = tmp_path_factory.mktemp("made")
    pack_noise(folder / "packed", 40)
    save_weights(folder / "w.safetensors")
    extract(folder / "w.safetensors", folder / "packed", folder / "f.npz", precision="float32")
    return folder


@pytest.fixture
def here(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def behind(folder):
    return Pictures.behind(folder / "f.npz", folder / "w.safetensors", folder / "packed")


@pytest.mark.parametrize("distractors", [0, 1])
def test_before_the_first_step_it_is_cspn_on_the_features(made, distractors):
    features, labels = load_features(made / "f.npz")
    episodes = sample_episodes(
        labels, way=3, shot=5, query=4, episodes=6, distractors=distractors, seed=1
    )
    start = TFT.with_options(steps=0)
    found = evaluate_fine_tuned(behind(made), [start], shot=[1, 5], episodes=episodes)
    for ours, theirs in zip(
        found, evaluate(features, labels, "cspn", shot=[1, 5], episodes=episodes), strict=True
    ):
        assert (ours.method, ours.shot, ours.episodes) == ("tft:steps=0", theirs.shot, 6)
        assert (ours.predictions == theirs.predictions).all()
        assert (ours.per_episode == theirs.per_episode).all()


def test_progress_and_the_same_results_again(made):
    _, labels = load_features(made / "f.npz")
    episodes = sample_episodes(labels, way=2, shot=1, query=2, episodes=3)
    seen = []
    large = TFT.with_options(steps=2, learning_rate=0.01)
    for _ in range(2):
        results = evaluate_fine_tuned(
            behind(made),
            [QUICK, large],
            shot=[1],
            episodes=episodes,
            progress=lambda *counts: seen.append(counts),
        )
        assert [one.method for one in results] == [QUICK.name, large.name]
    assert seen == 2 * [(done, 6) for done in range(1, 7)]
    again = evaluate_fine_tuned(behind(made), [large], shot=[1], episodes=episodes)
    assert (again[0].predictions == results[1].predictions).all()
    with pytest.raises(OptionError, match="device 'moon' cannot be used"):
        evaluate_fine_tuned(behind(made), [QUICK], shot=[1], episodes=episodes, device="moon")


def test_what_did_not_make_the_features_is_refused(made, tmp_path):
    save_weights(tmp_path / "other.safetensors", seed=1)
    pack_noise(tmp_path / "other", 40, seed=1)
    pack_noise(tmp_path / "val", 40, splits=("val",))
    np.savez(tmp_path / "plain.npz", features=np.eye(4), labels=[0, 0, 1, 1])
    good = {"features": made / "f.npz", "network": made / "w.safetensors"}
    good |= {"packed": made / "packed"}
    for changes, message in [
        ({"network": tmp_path / "other.safetensors"}, "packed: weights differs. Give what"),
        ({"packed": tmp_path / "other"}, "other: pictures differs. Give what"),
        ({"features": tmp_path / "plain.npz"}, "does not say which pictures it was made from"),
        ({"packed": tmp_path}, "is not a packed data set"),
        ({"network": "conv65"}, "unknown run, weights file or pretrained backbone"),
        ({"packed": tmp_path / "val"}, "unknown split of .*val 'test'"),
    ]:
        with pytest.raises((DataError, OptionError), match=message):
            Pictures.behind(**good | changes)


LINE = ["evaluate", "f.npz", "--method", QUICK.name, "--way", "2", "--shot", "1", "--query", "2"]
GIVEN = ["--network", "w.safetensors", "--pictures", "packed"]


def test_the_command_compares_it_with_the_others(here, capsys):
    line = [*LINE, "--method", "cspn", "--episodes", "4", "--shot", "2", "--json", "o.json"]
    assert main([*line, *GIVEN]) == 0
    held = json.loads(Path("o.json").read_text())
    order = [(one["method"], one["shot"]) for one in held["results"]]
    assert order == [(QUICK.name, 1), ("cspn", 1), (QUICK.name, 2), ("cspn", 2)]
    assert held["settings"]["network"] == "w.safetensors"
    assert held["settings"]["pictures"] == "packed"
    _, labels = load_features("f.npz")
    episodes = sample_episodes(labels, way=2, shot=2, query=2, episodes=4)
    alone = evaluate_fine_tuned(behind(here), [QUICK], shot=[1, 2], episodes=episodes)
    assert [one["accuracy"] for one in held["results"][::2]] == [one.accuracy for one in alone]
    assert "minus tft:steps=1" in capsys.readouterr().out
    assert main([*LINE, "--episodes", "2", *GIVEN]) == 0  # and alone


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LINE, "fine-tunes the network on pictures, so features alone do not do"),
        ([*LINE, *GIVEN[:2]], "--network and --pictures go together"),
        ([*LINE, *GIVEN[2:]], "--network and --pictures go together"),
        (["evaluate", "f.npz", *GIVEN], "are for tft, which is not among the methods"),
        ([*LINE, "--network", "w.safetensors", "--pictures", "."], "is not a packed data set"),
        (["compare", "f.npz", "--method", "tft"], "features alone do not do"),
    ],
)
def test_bad_input_is_one_sentence(here, capsys, line, message):
    assert main(line) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
