"""The networks that Meta-Dataset is measured with, which the user may choose.

A source is what `protorect extract` takes: a run, a file of weights or packaged weights.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from protorect._utils.checkpoint import load_tensors
from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.weights import BEST_WEIGHTS, WEIGHTS, TrainedBackbone
from protorect.errors import DataError, OptionError

PAPER_SOURCE = "meta-ilsvrc-2012"  # what the paper's network is trained on


def named_networks(sources: Iterable[str]) -> dict[str, str]:
    """The sources by the name that they have in file names; OptionError if two have the same."""
    networks: dict[str, str] = {}
    for source in dict.fromkeys(sources):
        stem = Path(source).name.removesuffix(".safetensors").removesuffix(".onnx")
        if not (name := re.sub(r"[^\w.-]", "-", stem).strip(".-")):
            raise OptionError(f"network {source!r} has no name; give a run or a file of weights.")
        if name in networks:
            raise OptionError(
                f"networks {networks[name]} and {source} have the same name, {name}, which their "
                "feature files would share; rename one."
            )
        networks[name] = source
    return networks


def trained_on(name: str, source: str, digest: str) -> str | None:
    """The data set that a network was trained on; None if no file of weights says so.

    DataError if it is the paper's and the features were made by other weights than `digest` says.
    """
    path = Path(source)
    path = path / BEST_WEIGHTS if path.is_dir() else path
    path = path if path.is_file() else pretrained_weights().get(source, path)
    if not path.is_file() or path.suffix != ".safetensors":
        return None
    data = load_tensors(path, WEIGHTS)[1].get("data")
    if data == PAPER_SOURCE and TrainedBackbone.load(path).digest != digest:
        raise DataError(
            f"the features of network {name} were not made by {path}. Extract them again, or give "
            "the network that made them."
        )
    return data if isinstance(data, str) else None
