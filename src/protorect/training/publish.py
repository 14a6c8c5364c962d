"""Weights of a run for others to use, with a card that says where they come from."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect._utils.files import sha256_of_file, write_text
from protorect.backbones.registry import BACKBONES
from protorect.backbones.weights import WEIGHTS, TrainedBackbone
from protorect.datasets.catalogue import DATASETS, dataset
from protorect.errors import DataError, OptionError
from protorect.training.run import Run

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


class Published(NamedTuple):
    """The two files."""

    weights: Path
    card: Path


def publish(
    run: str | os.PathLike[str],
    name: str,
    results: str | os.PathLike[str],
    out: str | os.PathLike[str],
) -> Published:
    """Write the best weights of a run and their card as NAME.safetensors and NAME.md.

    Parameters
    ----------
    run
        The folder that `protorect train` made.
    name
        What the weights shall be called.
    results
        The JSON file of `protorect evaluate` on features by these weights.
    out
        The folder for both files.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(f"{name!r} is no name for weights; use a-z, 0-9, - and . only.")
    finished = Run(Path(run))
    network = TrainedBackbone.load(finished.best)
    tensors, card = load_tensors(finished.best, WEIGHTS)
    if not isinstance(card.get("config"), dict):
        raise DataError(f"{finished.best} does not say how it was trained; train it again.")
    split, measured = _measured(Path(results), network.digest)
    files = Published(Path(out) / f"{name}.safetensors", Path(out) / f"{name}.md")
    save_tensors(files.weights, tensors, card | {"ink_high": network.bright_on_dark})
    write_text(files.card, _card(name, files.weights, network, card, split, measured))
    return files


def _measured(path: Path, digest: str) -> tuple[str, list[dict[str, Any]]]:
    """The split and its results; other weights than these are refused, as far as it is told."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        results = [
            {key: one[key] for key in ("method", "way", "shot", "query", "episodes")}
            | {key: float(one[key]) for key in ("accuracy", "ci95")}
            for one in document["results"]
        ]
        made_by = {"weights": digest, "split": "test"} | document["settings"].get("made_by", {})
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not what `protorect evaluate --json` writes.") from error
    if made_by["weights"] != digest:
        raise DataError(f"{path} was measured with other weights; evaluate these.")
    if not results:
        raise DataError(f"{path} holds no results.")
    return made_by["split"], results


def _card(
    name: str,
    weights: Path,
    network: TrainedBackbone,
    card: dict[str, Any],
    split: str,
    measured: list[dict[str, Any]],
) -> str:
    digest = sha256_of_file(weights)
    facts = {
        **_input(network),
        **_training(card),
        "file": f"{weights.name}, {weights.stat().st_size:,} bytes, SHA-256 `{digest}`",
    }
    return "\n".join(
        (
            f"# {name}",
            "",
            f"A {card['backbone']} trained with a cosine classifier on the base classes of "
            f"{card.get('data', 'a data set')},",
            "for few-shot tasks on classes it has never seen. Written by `protorect publish`.",
            "",
            "| | |",
            "|---|---|",
            *(f"| {fact} | {value} |" for fact, value in facts.items()),
            "",
            *_accuracy(split, measured),
            "## Use",
            "",
            f"    protorect extract {name} PICTURES --out features.npz",
            "    protorect evaluate features.npz",
            "",
            "## Recipe",
            "",
            *_recipe(card["config"]),
            "",
        )
    )


def _input(network: TrainedBackbone) -> dict[str, str]:
    backbone = network.backbone
    kind = "grey" if backbone.channels == 1 else "colour"
    ink = (
        "; drawings, dark ink on bright ground or the other way round"
        if network.bright_on_dark
        else ""
    )
    return {
        "network": f"{backbone.name}: {BACKBONES[backbone.name].summary}",
        "pictures": f"{backbone.size} x {backbone.size}, {kind}{ink}; others are brought to that",
        "features": str(backbone.dim),
    }


def _training(card: dict[str, Any]) -> dict[str, str]:
    facts: dict[str, str] = {}
    if card.get("data") in DATASETS:
        kind = dataset(card["data"])
        facts |= {"data": f"{kind.name}, {kind.source}", "licence of the data": kind.license}
    facts["training"] = f"epoch {card.get('epoch', '?')} of {card['config'].get('epochs', '?')}"
    if card.get("validation") is not None:
        facts["validation"] = f"{card['validation']:.2f} % (5-way 5-shot), the best of all epochs"
    return facts


def _recipe(config: dict[str, Any]) -> list[str]:
    """Lines of a configuration for `protorect train --config`."""
    return [
        f"    {key} = {json.dumps(value)}" for key, value in config.items() if value is not None
    ]


def _accuracy(split: str, measured: list[dict[str, Any]]) -> list[str]:
    """A table, a row a method and a column a shot."""
    shots = sorted({one["shot"] for one in measured})
    methods = list(dict.fromkeys(one["method"] for one in measured))
    found = {
        (one["method"], one["shot"]): f"{one['accuracy']:.2f} ± {one['ci95']:.2f}"
        for one in measured
    }
    first = measured[0]
    return [
        "## Accuracy",
        "",
        f"On {split} classes, in %, with 95 % intervals: {first['way']}-way, {first['query']} "
        f"queries a class, {first['episodes']} episodes.",
        "",
        f"| method | {' | '.join(f'{shot}-shot' for shot in shots)} |",
        f"|---|{'---:|' * len(shots)}",
        *(
            f"| {method} | {' | '.join(found.get((method, shot), '') for shot in shots)} |"
            for method in methods
        ),
        "",
    ]
