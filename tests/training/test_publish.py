"""`protorect publish`: the weights of a run with their model card."""

import json

import pytest

from helpers.packed import save_weights
from protorect import DataError, OptionError
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.backbones.weights import TrainedBackbone
from protorect.cli import main
from protorect.training.config import read_config
from protorect.training.publish import publish

RESULT = {"method": "cspn", "way": 5, "shot": 1, "query": 15, "episodes": 600}
RESULT |= {"accuracy": 61.234, "ci95": 0.5, "seconds": 0.1}


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    config = {"backbone": "conv64", "epochs": 3, "rates": [[0, 0.1]], "flip": None}
    card = {"epoch": 2, "validation": 70.0, "config": config, "data": "omniglot"}
    save_weights(tmp_path / "run" / "best.safetensors", **card)
    return tmp_path / "run"


def write_results(path, **settings):
    path.write_text(json.dumps({"results": [RESULT], "settings": settings}))
    return path


def test_a_run_is_published_with_its_card(run, tmp_path, capsys):
    results = write_results(
        tmp_path / "r.json", made_by={"weights": TrainedBackbone.load(run).digest}
    )
    out = tmp_path / "public"
    arguments = ["publish", str(run), "mine-1", "--results", str(results), "--out", str(out)]
    assert main(arguments) == 0
    shown = capsys.readouterr().out.split()
    assert shown == [str(out / "mine-1.safetensors"), str(out / "mine-1.md")]
    config = load_tensors(out / "mine-1.safetensors")[1]
    assert config["ink_high"] is True
    assert (
        TrainedBackbone.load(out / "mine-1.safetensors").digest == TrainedBackbone.load(run).digest
    )
    card = (out / "mine-1.md").read_text()
    for line in (
        "| cspn | 61.23 ± 0.50 |",
        "| license of the data | MIT |",
        "| training | epoch 2 of 3 |",
        "| validation | 70.00 % (5-way 5-shot), the best of all epochs |",
        "| method | 1-shot |",
        "|---|---:|",
        "    protorect extract mine-1.safetensors PICTURES --out features.npz",
    ):
        assert line in card.splitlines()
    recipe = card.partition("## Recipe")[2].replace("    ", "")
    (tmp_path / "recipe.toml").write_text(recipe)
    assert read_config(tmp_path / "recipe.toml").epochs == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("../x", "{}", "'../x' is no name for weights"),
        ("x", None, "cannot read .*r.json"),
        ("x", "{}", "is not what `protorect evaluate --json` writes"),
        ("x", '{"results": [{"way": 5}], "settings": {}}', "is not what"),
        ("x", '{"results": [], "settings": {}}', "holds no results"),
        ("x", json.dumps({"results": [RESULT], "settings": {}}), "does not say which weights"),
        ("x", '{"results": [], "settings": {"made_by": 1}}', "settings.made_by is 1"),
        ("x", "[" * 100_000, "is not what .*: it is not JSON"),
        (
            "x",
            json.dumps({"results": [RESULT | {"way": -5}], "settings": {}}),
            "way is -5",
        ),
        ("x", json.dumps({"results": [RESULT | {"shot": True}], "settings": {}}), "shot is True"),
        ("x", json.dumps({"results": [RESULT | {"accuracy": "a"}], "settings": {}}), "accuracy is"),
        (
            "x",
            json.dumps({"results": [RESULT], "settings": {"made_by": {"weights": "0"}}}),
            "other",
        ),
    ],
)
def test_a_bad_name_or_bad_results_are_refused(run, tmp_path, name, text, message):
    if text is not None:
        (tmp_path / "r.json").write_text(text)
    with pytest.raises((DataError, OptionError), match=message):
        publish(run, name, tmp_path / "r.json", tmp_path / "public")
    assert not (tmp_path / "public").exists()


def test_an_accuracy_without_an_interval(run, tmp_path):
    path, made_by = tmp_path / "r.json", {"weights": TrainedBackbone.load(run).digest}
    results = {"results": [RESULT | {"ci95": None}], "settings": {"made_by": made_by}}
    path.write_text(json.dumps(results))
    _, card = publish(run, "mine", path, tmp_path / "public")
    assert "| cspn | 61.23 |" in card.read_text().splitlines()


def test_a_validation_accuracy_that_is_no_number(run, tmp_path):
    best = run / "best.safetensors"
    tensors, config = load_tensors(best)
    save_tensors(best, tensors, config | {"validation": "good"})
    with pytest.raises(DataError, match="validation is 'good'"):
        publish(run, "mine", write_results(tmp_path / "r.json"), tmp_path / "public")
