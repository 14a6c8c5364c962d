"""Weights of a run for others to use, with a model card that says where they come from."""

import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Template

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect._utils.documents import COUNT, read_json
from protorect._utils.files import sha256_of_file, write_text
from protorect.backbones.registry import BACKBONES
from protorect.backbones.weights import WEIGHTS, TrainedBackbone
from protorect.datasets.catalogue import DATASETS
from protorect.errors import DataError, OptionError
from protorect.training.run import Run

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
_RESULT: dict[str, Any] = dict.fromkeys(("way", "shot", "query", "episodes"), COUNT)
_RESULT |= {"method": str, "accuracy": float, "ci95": {float, None}}  # None of a single episode
_MADE_BY = {"weights": str, "split?": str}
_RESULTS = {"results": [_RESULT], "settings": {"made_by?": _MADE_BY}}


def publish(
    run: str | os.PathLike[str],
    name: str,
    results: str | os.PathLike[str],
    out: str | os.PathLike[str],
) -> tuple[Path, Path]:
    """Write the best weights of the run in folder `run` and their model card into folder `out`.

    The files are NAME.safetensors and NAME.md; `results` is the JSON file that `protorect
    evaluate` wrote for features extracted with these weights.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(f"{name!r} is no name for weights; use a-z, 0-9, - and . only.")
    best = Run(Path(run)).best
    network = TrainedBackbone.load(best)
    tensors, config = load_tensors(best, WEIGHTS, {"validation?": {float, None}})
    if not isinstance(config.get("config"), dict):
        raise DataError(f"{best} does not say how it was trained; train it again.")
    split, measured = _read_results(Path(results), network.digest)
    weights, card = Path(out) / f"{name}.safetensors", Path(out) / f"{name}.md"
    save_tensors(weights, tensors, config | {"ink_high": network.bright_on_dark})
    write_text(card, _model_card(name, weights, network, config, split, measured))
    return weights, card


def _read_results(path: Path, digest: str) -> tuple[str, list[dict[str, Any]]]:
    """The split and its results; DataError unless the file says that it measured these weights."""
    document = read_json(path, _RESULTS, fault="is not what `protorect evaluate --json` writes")
    results = document["results"]
    if not results:
        raise DataError(f"{path} holds no results.")
    made_by = document["settings"].get("made_by")
    if made_by is None:
        raise DataError(
            f"{path} does not say which weights it measured; evaluate features that `protorect "
            "extract` wrote with these weights."
        )
    if made_by["weights"] != digest:
        raise DataError(f"{path} was measured with other weights; evaluate these weights.")
    return made_by.get("split", "test"), results


def _model_card(
    name: str,
    weights: Path,
    network: TrainedBackbone,
    config: dict[str, Any],
    split: str,
    results: list[dict[str, Any]],
) -> str:
    shots = sorted({result["shot"] for result in results})
    accuracies: dict[str, list[str]] = {result["method"]: [""] * len(shots) for result in results}
    for result in results:
        interval = "" if result["ci95"] is None else f" ± {result['ci95']:.2f}"
        accuracies[result["method"]][shots.index(result["shot"])] = (
            f"{result['accuracy']:.2f}{interval}"
        )
    source = files("protorect.training").joinpath("model_card.md.jinja").read_text("utf-8")
    template: Template = Template(source, trim_blocks=True, keep_trailing_newline=True)
    return template.render(
        name=name,
        weights=weights,
        digest=sha256_of_file(weights),
        backbone=network.backbone,
        summary=BACKBONES[network.backbone.name].summary,
        drawings=network.bright_on_dark,
        config={"validation": None} | config,
        dataset=DATASETS.get(str(config.get("data"))),
        split=split,
        results=results,
        shots=shots,
        accuracies=accuracies,
        json=json.dumps,
    )
