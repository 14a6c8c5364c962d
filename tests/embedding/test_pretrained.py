"""The weights in the package, and the command that puts them there."""

import hashlib
import json

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.packed import save_weights
from protorect import DataError, OptionError, load_features
from protorect._utils.checkpoint import load_tensors
from protorect.backbones.pretrained import pretrained_weights
from protorect.cli import main
from protorect.datasets.prepare import prepare
from protorect.embedding import Extractor, extract
from protorect.training import read_config

MOST_BYTES = 3_000_000


@pytest.mark.parametrize("name", pretrained_weights())
def test_weights_in_the_package_are_small_and_their_card_is_theirs(name):
    path = pretrained_weights()[name]
    assert path.stat().st_size < MOST_BYTES
    card = path.with_suffix(".md").read_text()
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card
    assert "licence" in card
    assert "| bd-cspn |" in card
    extractor = Extractor.load(name)
    size = extractor.backbone.size
    with torch.inference_mode():
        features = extractor.backbone.eval()(torch.rand(2, extractor.backbone.channels, size, size))
    assert features.isfinite().all()


def test_names_are_told(capsys):
    with pytest.raises(SystemExit):
        main(["extract", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "omniglot-conv64, efficientnet-lite0 (ImageNet)" in shown
    with pytest.raises(OptionError, match="Did you mean 'omniglot-conv64'?.* Known: .*omniglot-co"):
        Extractor.load("omniglot-conv46")


@pytest.fixture
def drawings(tmp_path):
    """Dark strokes on white paper."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "drawings" / name).mkdir(parents=True)
        for number in range(3):
            ink = rng.random((105, 105)) < 0.1
            picture = Image.fromarray(np.where(ink, 0, 255).astype(np.uint8))
            picture.save(tmp_path / "drawings" / name / f"{number}.png")
    return tmp_path / "drawings"


def negatives(drawings, folder):
    for path in drawings.glob("*/*.png"):
        (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(255 - np.asarray(Image.open(path)))
        image.save(folder / path.parent.name / path.name)
    return folder


def test_ink_may_be_dark_or_bright(drawings, tmp_path, capsys):
    """Whichever way, packed before or not, the network sees bright ink."""
    bright = negatives(drawings, tmp_path / "bright")
    prepare("folder", drawings, tmp_path / "packed", size=28, channels=1, split=(0.0, 0.0, 1.0))
    found = []
    for name, source in (("d", drawings), ("b", bright), ("p", tmp_path / "packed")):
        assert main(["extract", "omniglot-conv64", str(source), "--out", str(tmp_path / name)]) == 0
        swapped = "dark and bright changed places" in capsys.readouterr().err
        assert swapped == (name != "b")
        found.append(load_features(tmp_path / name)[0])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_allclose(found[0], found[1], atol=0.15)  # resized before or after: rounding


def test_only_a_network_for_ink_swaps(drawings, weights, tmp_path):
    assert not extract(weights, drawings, tmp_path / "f.npz").inverted
    assert Extractor.load(save_weights(tmp_path / "old.safetensors", data="omniglot")).ink_high
    said = save_weights(tmp_path / "new.safetensors", data="omniglot", ink_high=False)
    assert not Extractor.load(said).ink_high


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
    results = write_results(tmp_path / "r.json", made_by={"weights": Extractor.load(run).digest})
    out = tmp_path / "public"
    words = ["publish", str(run), "mine-1", "--results", str(results), "--out", str(out)]
    assert main(words) == 0
    shown = capsys.readouterr().out.split()
    assert shown == [str(out / "mine-1.safetensors"), str(out / "mine-1.md")]
    held = load_tensors(out / "mine-1.safetensors")[1]
    assert held["ink_high"] is True
    assert Extractor.load(out / "mine-1.safetensors").digest == Extractor.load(run).digest
    card = (out / "mine-1.md").read_text()
    for line in (
        "| cspn | 61.23 ± 0.50 |",
        "| licence of the data | MIT |",
        "| training | epoch 2",
    ):
        assert line in card
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
        (
            "x",
            json.dumps({"results": [RESULT], "settings": {"made_by": {"weights": "0"}}}),
            "other",
        ),
    ],
)
def test_what_cannot_be_published(run, tmp_path, name, text, message):
    from protorect.training.publish import publish

    if text is not None:
        (tmp_path / "r.json").write_text(text)
    with pytest.raises((DataError, OptionError), match=message):
        publish(run, name, tmp_path / "r.json", tmp_path / "public")
    assert not (tmp_path / "public").exists()
