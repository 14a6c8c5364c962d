"""The networks that Meta-Dataset is measured with, which the user may choose."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

from protorect._utils.checkpoint import load_tensors
from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.weights import BEST_WEIGHTS, WEIGHTS, TrainedBackbone
from protorect.errors import DataError, OptionError

PAPER_SOURCE = "meta-ilsvrc-2012"  # what the paper's network is trained on


class Network(NamedTuple):
    """A network by its source, as `protorect extract` takes it, and its name in file names."""

    name: str
    source: str

    @classmethod
    def of(cls, source: str) -> Self:
        """The network of a source, such as a run, a file of weights or packaged weights."""
        name = Path(source).name.removesuffix(".safetensors").removesuffix(".onnx")
        if not (name := re.sub(r"[^\w.-]", "-", name).strip(".-")):
            raise OptionError(f"network {source!r} has no name; give a run or a file of weights.")
        return cls(name, source)

    @property
    def weights(self) -> Path | None:
        """Its file of weights; None if there is none, as of networks from elsewhere."""
        path = Path(self.source)
        path = path / BEST_WEIGHTS if path.is_dir() else path
        path = path if path.is_file() else pretrained_weights().get(self.source, path)
        return path if path.is_file() and path.suffix == ".safetensors" else None

    def trained_on(self, digest: str) -> str | None:
        """The data set that its weights, of this digest, were trained on, if the file says so.

        DataError if it is the paper's and the features were made by other weights.
        """
        if self.weights is None:
            return None
        data = load_tensors(self.weights, WEIGHTS)[1].get("data")
        if data == PAPER_SOURCE and TrainedBackbone.load(self.weights).digest != digest:
            raise DataError(
                f"the features of network {self.name} were not made by {self.weights}. Extract "
                "them again, or give the network that made them."
            )
        return data if isinstance(data, str) else None


def named_networks(sources: Iterable[str]) -> dict[str, Network]:
    """The networks of these sources by name; OptionError if two have the same."""
    networks: dict[str, Network] = {}
    for source in dict.fromkeys(sources):
        network = Network.of(source)
        if network.name in networks:
            raise OptionError(
                f"networks {networks[network.name].source} and {source} have the same name, "
                f"{network.name}, which their feature files would share; rename one."
            )
        networks[network.name] = network
    return networks
