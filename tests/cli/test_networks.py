"""The list of networks."""

import json

import pytest

from protorect.cli import main
from protorect.embedding.networks import MEASURED, RESEARCH_ONLY, networks
from protorect.embedding.sources import COMBINATIONS, DEFAULT_SOURCE, IMAGENET


def test_every_network_is_listed_with_its_terms(capsys):
    assert main(["networks"]) == 0
    shown = capsys.readouterr().out
    for name in networks():
        assert f"\n{name}" in f"\n{shown}"
    assert f"{DEFAULT_SOURCE} (default)" in shown
    assert "Apache-2.0" in shown
    for source in ("hf:facebook/dinov2-small", "siglip", "clip", "onnx:PATH", "mirror=true"):
        assert source in shown


def test_weights_trained_on_pictures_for_research_are_for_research():
    terms = {name: network.terms for name, network in networks().items()}
    assert all(terms[name] == RESEARCH_ONLY for name in terms if name.startswith(("cub", "mini")))
    assert terms["omniglot-conv64"] != RESEARCH_ONLY
    assert terms[DEFAULT_SOURCE] != RESEARCH_ONLY
    assert set(terms) > {*IMAGENET, *COMBINATIONS}


def test_accuracy_is_shown_as_it_was_measured(capsys):
    assert main(["networks", DEFAULT_SOURCE]) == 0
    shown = capsys.readouterr().out
    one = json.loads(MEASURED.read_text())["networks"][DEFAULT_SOURCE]["groceries"]["1"]
    assert f"groceries   {one['accuracy']:.1f} ± {one['ci95']:.1f} with 1 example," in shown
    assert "best\n" not in shown


def test_the_speed_is_measured_on_request(capsys, color_weights):
    assert main(["networks", "--measure", str(color_weights), "--precision", "float32"]) == 0
    shown = capsys.readouterr().out
    rate = next(line for line in shown.splitlines() if "here" in line)
    assert rate.endswith("pictures/s, conv64 in float32 on cpu")
    assert float(rate.split()[1]) > 0


def test_an_unknown_network_is_refused(capsys):
    assert main(["networks", "efficientnet-lite3"]) == 2
    assert "Did you mean 'efficientnet-lite2'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["networks", "--precision", "int4"])
