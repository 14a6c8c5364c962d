"""Networks that turn decoded pictures into features, by the name of their source."""

import hashlib
import os
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from protorect._utils.tensors import usable_device
from protorect.backbones.inference import embed, optimize, uses_bfloat16
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources.hugging_face import load_hugging_face
from protorect.embedding.sources.onnx import OnnxEmbedder

DEFAULT_SOURCE = "efficientnet-lite0"


class Embedder(Protocol):
    """Maps pictures to features; several threads may call it at once."""

    digest: str  # of everything that determines its features: weights, preprocessing, precision
    size: int  # of the pictures it takes
    channels: int

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, size, size, channels)."""


class BackboneEmbedder:
    """A trained backbone, optimized for inference on a device in one precision."""

    def __init__(self, network: TrainedBackbone, precision: str, device: str) -> None:
        usable_device(device)
        bfloat16 = uses_bfloat16(precision, device)
        self._backbone = optimize(network.backbone, bfloat16=bfloat16, device=device)
        self._embed = partial(
            embed, preprocessing=network.preprocessing, bfloat16=bfloat16, device=device
        )
        self.size = network.backbone.size
        self.channels = network.backbone.channels
        origin = f"{network.digest} {network.preprocessing} {self.size} {bfloat16}"
        self.digest = hashlib.sha256(origin.encode()).hexdigest()

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, size, size, channels)."""
        return self._embed(self._backbone, pictures)


def load_embedder(
    source: str | os.PathLike[str] = DEFAULT_SOURCE, *, precision: str = "auto", device: str = "cpu"
) -> Embedder:
    """Load a network by the name of its source.

    That is the folder of a run, a .safetensors file of weights, the name of a pretrained backbone,
    `onnx:PATH` for an ONNX file, which has its own precision and is run on the CPU, or `hf:NAME`
    for a vision model of Hugging Face. Precision is "auto", "bfloat16" or "float32".
    """
    kind, _, rest = os.fspath(source).partition(":")
    if kind == "onnx":
        return OnnxEmbedder(rest)
    network = load_hugging_face(rest) if kind == "hf" else TrainedBackbone.load(source)
    return BackboneEmbedder(network, precision, device)
