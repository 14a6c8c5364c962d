"""Networks that turn decoded pictures into features, by the name of their source."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

DEFAULT_SOURCE = "efficientnet-lite0"


class Embedder(Protocol):
    """Maps pictures to features; several threads may call it at once.

    Attributes
    ----------
    digest
        Of everything that determines its features: weights, preprocessing and precision.
    size, channels
        Of the pictures it takes.
    """

    @property
    def digest(self) -> str: ...  # noqa: D102

    @property
    def size(self) -> int: ...  # noqa: D102

    @property
    def channels(self) -> int: ...  # noqa: D102

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, size, size, channels)."""


def load_embedder(
    source: str | os.PathLike[str] = DEFAULT_SOURCE, *, precision: str = "auto", device: str = "cpu"
) -> Embedder:
    """Load a network by the name of its source.

    Parameters
    ----------
    source
        The folder of a run, a .safetensors file of weights, the name of a pretrained backbone,
        `onnx:PATH` for an ONNX file, or `hf:NAME` for a vision model of Hugging Face.
    precision
        "auto", "bfloat16" or "float32"; an ONNX file has its own.
    device
        Where to compute, as torch names it; an ONNX file is run on the processor.
    """
    kind, _, rest = os.fspath(source).partition(":")
    if kind == "onnx":
        from protorect.embedding.sources.onnx import OnnxEmbedder

        return OnnxEmbedder.load(rest)
    from protorect.backbones.weights import TrainedBackbone
    from protorect.embedding.sources.backbone import BackboneEmbedder
    from protorect.embedding.sources.hugging_face import load_hugging_face

    network = load_hugging_face(rest) if kind == "hf" else TrainedBackbone.load(source)
    return BackboneEmbedder(network, precision, device)
