"""Fine-tuned networks on episodes of pictures, and the command `evaluate` with them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.packed import pack_noise, save_weights
from helpers.pictures import class_folders
from protorect import DataError, OptionError, evaluate, load_features, sample_episodes
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.backbones.cosine_classifier import CosineClassifier
from protorect.backbones.weights import BASE_CLASSIFIER, WEIGHTS, TrainedBackbone
from protorect.cli import main
from protorect.embedding.extract import extract
from protorect.evaluation.fine_tuned import Pictures, evaluate_fine_tuned
from protorect.methods import PICTURE_METHODS

TFT = PICTURE_METHODS["tft"]
QUICK = TFT.with_options(iterations=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Packed noise, weights, and the features they make."""
    folder = tmp_path_factory.mktemp("data")
    pack_noise(folder / "packed", 40)
    save_weights(folder / "w.safetensors")
    extract(folder / "w.safetensors", folder / "packed", folder / "f.npz", precision="float32")
    return folder


@pytest.fixture
def here(data, monkeypatch):
    monkeypatch.chdir(data)
    return data


def behind(folder):
    return Pictures.behind(folder / "f.npz", folder / "w.safetensors", folder / "packed")


@pytest.mark.parametrize("distractors", [0, 1])
def test_before_the_first_step_it_is_cspn_on_the_features(data, distractors):
    features, labels = load_features(data / "f.npz")
    episodes = sample_episodes(
        labels, way=3, shot=5, query=4, episodes=6, distractors=distractors, seed=1
    )
    start = TFT.with_options(iterations=0)
    results = evaluate_fine_tuned(
        behind(data), [start], shot=[1, 5], episodes=episodes, precision="float32"
    )
    expected = evaluate(features, labels, "cspn", shot=[1, 5], episodes=episodes)
    for tft, cspn in zip(results, expected, strict=True):
        assert (tft.method, tft.shot, tft.episodes) == ("tft:iterations=0", cspn.shot, 6)
        assert (tft.predictions == cspn.predictions).all()
        assert (tft.per_episode == cspn.per_episode).all()


def test_progress_and_reproducible_results(data):
    _, labels = load_features(data / "f.npz")
    episodes = sample_episodes(labels, way=2, shot=1, query=2, episodes=3)
    seen = []
    large = TFT.with_options(iterations=2, learning_rate=0.01)
    for _ in range(2):
        results = evaluate_fine_tuned(
            behind(data),
            [QUICK, large],
            shot=[1],
            episodes=episodes,
            progress=lambda *counts: seen.append(counts),
        )
        assert [one.method for one in results] == [QUICK.name, large.name]
    assert seen == 2 * [(done, 6) for done in range(1, 7)]
    again = evaluate_fine_tuned(behind(data), [large], shot=[1], episodes=episodes)
    assert (again[0].predictions == results[1].predictions).all()
    with pytest.raises(OptionError, match="device 'moon' cannot be used"):
        evaluate_fine_tuned(behind(data), [QUICK], shot=[1], episodes=episodes, device="moon")


def test_another_network_or_other_pictures_are_refused(data, tmp_path):
    save_weights(tmp_path / "other.safetensors", seed=1)
    pack_noise(tmp_path / "other", 40, seed=1)
    pack_noise(tmp_path / "val", 40, splits=("val",))
    np.savez(tmp_path / "plain.npz", features=np.eye(4), labels=[0, 0, 1, 1])
    class_folders(tmp_path / "folders", ["a", "b"], 2)
    extract(data / "w.safetensors", tmp_path / "folders", tmp_path / "folders.npz", cache=False)
    good = {"features": data / "f.npz", "network": data / "w.safetensors"}
    good |= {"packed": data / "packed"}
    for changes, message in [
        ({"network": tmp_path / "other.safetensors"}, "packed: weights differs. Give what"),
        ({"packed": tmp_path / "other"}, "other: pictures differs. Give what"),
        ({"features": tmp_path / "plain.npz"}, "does not say which pictures it was made from"),
        ({"features": tmp_path / "folders.npz"}, "class folders, and fine-tuning needs packed"),
        ({"packed": tmp_path}, "is not a packed data set"),
        ({"network": "conv65"}, "unknown run, weights file or pretrained backbone"),
        ({"packed": tmp_path / "val"}, "unknown split of .*val 'test'"),
    ]:
        with pytest.raises((DataError, OptionError), match=message):
            Pictures.behind(**good | changes)


def with_classifier(folder, classes=6):
    """The same weights with a base classifier beside them, as `protorect train` writes them."""
    tensors, card = load_tensors(folder / "w.safetensors", WEIGHTS)
    torch.manual_seed(0)
    classifier = CosineClassifier(TrainedBackbone.load(folder / "w.safetensors").backbone.dim, 6)
    base = {f"{BASE_CLASSIFIER}{n}": t for n, t in classifier.state_dict().items()}
    save_tensors(folder / "with.safetensors", tensors | base, card)
    return classifier


def test_the_layer_is_on_the_rectified_logits_of_the_base_classifier(data):
    classifier = with_classifier(data)
    features, labels = load_features(data / "f.npz")
    with torch.no_grad():
        logits = classifier(torch.from_numpy(features)).relu().numpy()
    episodes = sample_episodes(labels, way=3, shot=1, query=4, episodes=6)
    pictures = Pictures.behind(data / "f.npz", data / "with.safetensors", data / "packed")
    start = TFT.with_options(layer="logits", iterations=0)
    (tft,) = evaluate_fine_tuned(
        pictures, [start], shot=[1], episodes=episodes, precision="float32"
    )
    (cspn,) = evaluate(logits, labels, "cspn", shot=1, episodes=episodes)
    assert (tft.predictions == cspn.predictions).all()


def test_a_network_without_base_classifier_is_refused_before_anything_is_computed(here, capsys):
    line = [*LINE[:3], "tft:layer=logits", "--method", "cspn", *LINE[4:], *NETWORK]
    assert main(line) == 2
    shown = capsys.readouterr()
    assert "needs the base classifier, which these weights do not contain" in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out


LINE = ["evaluate", "f.npz", "--method", QUICK.name, "--way", "2", "--shot", "1", "--query", "2"]
NETWORK = ["--network", "w.safetensors", "--pictures", "packed"]


def test_the_command_compares_it_with_methods_on_features(here, capsys):
    line = [*LINE, "--method", "cspn", "--episodes", "4", "--shot", "2", "--json", "o.json"]
    assert main([*line, *NETWORK]) == 0
    document = json.loads(Path("o.json").read_text())
    order = [(one["method"], one["shot"]) for one in document["results"]]
    assert order == [(QUICK.name, 1), ("cspn", 1), (QUICK.name, 2), ("cspn", 2)]
    assert document["settings"]["network"] == "w.safetensors"
    assert document["settings"]["pictures"] == "packed"
    _, labels = load_features("f.npz")
    episodes = sample_episodes(labels, way=2, shot=2, query=2, episodes=4)
    alone = evaluate_fine_tuned(behind(here), [QUICK], shot=[1, 2], episodes=episodes)
    assert [one["accuracy"] for one in document["results"][::2]] == [one.accuracy for one in alone]
    assert "minus tft:iterations=1" in capsys.readouterr().out
    assert main([*LINE, "--episodes", "2", *NETWORK]) == 0  # and alone


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LINE, "fine-tunes the network on pictures, so features alone do not do"),
        ([*LINE, *NETWORK[:2]], "network and pictures go together"),
        ([*LINE, *NETWORK[2:]], "network and pictures go together"),
        (["evaluate", "f.npz", *NETWORK], "are for tft, which is not among the methods"),
        ([*LINE, "--network", "w.safetensors", "--pictures", "."], "is not a packed data set"),
        (["compare", "f.npz", "--method", "tft"], "features alone do not do"),
    ],
)
def test_bad_input_is_reported_in_one_line(here, capsys, line, message):
    assert main(line) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
