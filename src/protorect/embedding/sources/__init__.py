"""Networks that turn decoded pictures into features, by the name of their source."""

import os

import numpy as np

from protorect._utils.parameters import EMBEDDING_PRECISIONS, check_choice
from protorect._utils.tensors import usable_device
from protorect.backbones.inference import uses_bfloat16
from protorect.backbones.registry import BACKBONES
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources.embedder import (
    Concatenated,
    Embedder,
    Mirrored,
    NetworkOptions,
    parse_options,
)
from protorect.embedding.sources.hugging_face import HuggingFaceOptions, load_hugging_face
from protorect.embedding.sources.lite import LiteEmbedder
from protorect.embedding.sources.onnx import OnnxEmbedder, parse_onnx
from protorect.embedding.sources.session import sums_bytes_exactly
from protorect.embedding.sources.torch_network import TorchEmbedder
from protorect.errors import DataError, OptionError

__all__ = ["COMBINATIONS", "DEFAULT_SOURCE", "IMAGENET", "Embedder", "load_embedder"]

DEFAULT_SOURCE = "efficientnet-lite2"
IMAGENET = tuple(name for name, spec in BACKBONES.items() if spec.pretrained)
COMBINATIONS = {"best": ("efficientnet-lite1", "efficientnet-lite2")}  # networks concatenated
_MOST_FEATURES = 100_000  # of one picture


def load_embedder(
    source: str | os.PathLike[str] = DEFAULT_SOURCE,
    *,
    precision: str = "auto",
    device: str = "auto",
) -> Embedder:
    """Load a network by the name of its source.

    That is the name of a pretrained network, "best" for several of them together, the folder of a
    run, a .safetensors file of weights, `onnx:PATH` for an ONNX file, which has its own precision
    and is run on the CPU, or `hf:NAME` for a vision model of Hugging Face. Options follow, as in
    `efficientnet-lite2:mirror=true`.

    Precision is "auto", "bfloat16", "float32" or "int8"; "auto" is what is fastest on the device
    without loss. The device is named as in torch, or "auto": a GPU if there is one.
    """
    device = str(usable_device(device))
    check_choice("precision", precision, EMBEDDING_PRECISIONS)
    kind, colon, rest = os.fspath(source).partition(":")
    options: NetworkOptions
    if colon and kind == "onnx":
        path, options = parse_onnx(rest)
        embedder = _checked(OnnxEmbedder(path, options))
    elif colon and kind == "hf":
        name, hf_options = parse_options(rest, HuggingFaceOptions)
        network, options = load_hugging_face(name, hf_options), hf_options
        embedder = _checked(_torch_embedder(network, name, precision, device))
    else:
        name, options = parse_options(os.fspath(source), NetworkOptions)
        embedder = _load(name, precision, device)
    return Mirrored(embedder) if options.mirror else embedder


def _load(name: str, precision: str, device: str) -> Embedder:
    """A pretrained network, several of them, or weights of a run or in a file."""
    if os.path.exists(name) or name not in (*IMAGENET, *COMBINATIONS):
        network = TrainedBackbone.load(name, COMBINATIONS)
        return _checked(_torch_embedder(network, name, precision, device))
    if name in COMBINATIONS:
        return Concatenated(name, [_load(part, precision, device) for part in COMBINATIONS[name]])
    if precision == "int8" and (problem := _no_int8(device)):
        raise OptionError(f"precision 'int8' cannot be used: {problem}; use 'auto'.")
    if precision == "auto" and device == "cpu":
        precision = "float32" if _no_int8(device) else "int8"
    if device == "cpu" and precision != "bfloat16":
        return LiteEmbedder(name, precision)
    return _torch_embedder(TrainedBackbone.load(name), name, precision, device)


def _torch_embedder(network: TrainedBackbone, name: str, precision: str, device: str) -> Embedder:
    if precision == "int8":
        have = ", ".join((*IMAGENET, *COMBINATIONS))
        raise OptionError(f"{name} has no int8 version; {have} have one. Use 'auto'.")
    bfloat16 = uses_bfloat16(precision, device)
    return TorchEmbedder(network, "bfloat16" if bfloat16 else "float32", device)


def _checked(embedder: Embedder) -> Embedder:
    """The network of a user; DataError if it gives no features, or the same for every picture."""
    shape = (2, embedder.size, embedder.size, embedder.channels)
    features = embedder(np.random.default_rng(0).integers(0, 256, shape, np.uint8))
    name = embedder.origin["backbone"]
    if features.ndim != 2 or not 1 <= features.shape[1] <= _MOST_FEATURES:
        raise DataError(
            f"{name} gives {features.size // 2:,} numbers per picture; a network that embeds "
            f"pictures gives 1 to {_MOST_FEATURES:,}."
        )
    if not np.isfinite(features).all():
        raise DataError(f"{name} gives features that are not finite numbers; use another network.")
    if (features[0] == features[1]).all():
        raise DataError(f"{name} gives the same features for every picture; use another network.")
    return embedder


def _no_int8(device: str) -> str:
    """Why eight-bit integers cannot be used; empty if they can."""
    if device != "cpu":
        return f"it is for the cpu, and the device is {device}"
    if not sums_bytes_exactly():
        return "this processor lacks instructions for it (VNNI, AMX or ARM's dot product)"
    return ""
