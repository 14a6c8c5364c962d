"""Which network is meant by a name."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

DEFAULT_SOURCE = "efficientnet-lite0"


class Embedder(Protocol):
    """What turns pictures into features; several threads may call it at once.

    Attributes
    ----------
    digest
        Of everything that its features follow from: weights, preprocessing and precision.
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
    """The network that a name means.

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
    from protorect.embedding.sources.backbone import BackboneEmbedder

    if kind == "hf":
        from protorect.embedding.sources.hugging_face import load_hugging_face

        return BackboneEmbedder(load_hugging_face(rest), precision, device)
    from protorect.backbones.weights import TrainedBackbone

    return BackboneEmbedder(TrainedBackbone.load(source), precision, device)
