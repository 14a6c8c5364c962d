"""Networks that turn decoded pictures into features, by the name of their source."""

import copy
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from protorect._utils.tensors import usable_device
from protorect.backbones.base import Backbone
from protorect.backbones.inference import embed, optimize, uses_bfloat16
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources.hugging_face import load_hugging_face
from protorect.embedding.sources.onnx import OnnxEmbedder

DEFAULT_SOURCE = "efficientnet-lite0"


class Embedder(Protocol):
    """Maps pictures to features; several threads may call it at once, and it can be pickled."""

    digest: str  # of everything that determines its features: weights, preprocessing, precision
    origin: dict[str, Any]  # the same in words and numbers, to record with the features
    size: int  # of the pictures that are decoded for it
    channels: int

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""

    def suited_to(self, mean: Callable[[], Sequence[float]]) -> Self:
        """The same network for pictures of this mean, which is called only if it matters."""


class BackboneEmbedder:
    """A trained backbone, optimized for inference on a device in one precision."""

    def __init__(self, network: TrainedBackbone, precision: str, device: str) -> None:
        self._bfloat16, self._device = uses_bfloat16(precision, device), device
        self._weights = network.digest
        optimized = optimize(network.backbone, bfloat16=self._bfloat16, device=device)
        self._network = replace(network, backbone=optimized, base_classifier=None)
        self.size, self.channels = network.backbone.size, network.backbone.channels
        self._use(network.preprocessing)

    def _use(self, preprocessing: Preprocessing) -> None:
        self._preprocessing = preprocessing
        determined_by = f"{self._weights} {preprocessing} {self.size} {self._bfloat16}"
        self.digest = hashlib.sha256(determined_by.encode()).hexdigest()
        self.origin = origin_of(self._network.backbone, self._weights, preprocessing)
        self.origin["precision"] = "bfloat16" if self._bfloat16 else "float32"

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""
        backbone, preprocessing = self._network.backbone, self._preprocessing
        return embed(
            backbone, pictures, preprocessing, bfloat16=self._bfloat16, device=self._device
        )

    def suited_to(self, mean: Callable[[], Sequence[float]]) -> Self:
        """The same network; it exchanges dark and bright if `preprocessing_for` says so."""
        if not self._network.bright_on_dark:
            return self
        suited = copy.copy(self)
        suited._use(self._network.preprocessing_for(mean()))
        return suited


def origin_of(backbone: Backbone, weights: str, preprocessing: Preprocessing) -> dict[str, Any]:
    """A network with weights of this digest and its preprocessing, as a feature file has them."""
    return {
        "backbone": backbone.name,
        "weights": weights,
        "size": backbone.size,
        "mean": list(preprocessing.mean),
        "std": list(preprocessing.std),
        "inverted": preprocessing.inverted,
    }


def load_embedder(
    source: str | os.PathLike[str] = DEFAULT_SOURCE, *, precision: str = "auto", device: str = "cpu"
) -> Embedder:
    """Load a network by the name of its source.

    That is the folder of a run, a .safetensors file of weights, the name of a pretrained backbone,
    `onnx:PATH` for an ONNX file, which has its own precision and is run on the CPU, or `hf:NAME`
    for a vision model of Hugging Face. Precision is "auto", "bfloat16" or "float32".
    """
    usable_device(device)
    uses_bfloat16(precision, device)  # checks the name, before anything is loaded
    kind, _, rest = os.fspath(source).partition(":")
    if kind == "onnx":
        return OnnxEmbedder(rest)
    network = load_hugging_face(rest) if kind == "hf" else TrainedBackbone.load(source)
    return BackboneEmbedder(network, precision, device)
