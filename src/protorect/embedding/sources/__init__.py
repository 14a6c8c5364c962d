"""Networks that turn decoded pictures into features, by the name of their source."""

import os

from protorect._utils.parameters import EMBEDDING_PRECISIONS, check_choice
from protorect._utils.tensors import usable_device
from protorect.backbones.inference import uses_bfloat16
from protorect.backbones.registry import BACKBONES
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources.check import checked as _checked
from protorect.embedding.sources.embedder import Concatenated, Embedder, Mirrored
from protorect.embedding.sources.hugging_face import HuggingFaceOptions, load_hugging_face
from protorect.embedding.sources.lite import LiteEmbedder
from protorect.embedding.sources.onnx import OnnxEmbedder, parse_onnx
from protorect.embedding.sources.options import NetworkOptions, parse_options
from protorect.embedding.sources.session import sums_bytes_exactly
from protorect.embedding.sources.torch_network import TorchEmbedder
from protorect.errors import OptionError

__all__ = ["COMBINATIONS", "DEFAULT_SOURCE", "IMAGENET", "Embedder", "load_embedder"]

DEFAULT_SOURCE = "efficientnet-lite2"
IMAGENET = tuple(name for name, spec in BACKBONES.items() if spec.pretrained)
COMBINATIONS = {"best": ("efficientnet-lite1", "efficientnet-lite2")}  # networks concatenated


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
    if colon and kind == "onnx":
        path, onnx_options = parse_onnx(rest)
        return _with_options(_checked(OnnxEmbedder(path, onnx_options)), onnx_options)
    if colon and kind == "hf":
        name, hf_options = parse_options(rest, HuggingFaceOptions)
        network = load_hugging_face(name, hf_options)
        embedder = TorchEmbedder(network, _of_torch(name, precision, device), device)
        return _with_options(_checked(embedder), hf_options)
    name, options = parse_options(os.fspath(source), NetworkOptions)
    return _with_options(_load(name, precision, device), options)


def _with_options(embedder: Embedder, options: NetworkOptions) -> Embedder:
    return Mirrored(embedder) if options.mirror else embedder


def _load(name: str, precision: str, device: str) -> Embedder:
    """A pretrained network, several of them, or weights of a run or in a file."""
    if os.path.exists(name) or name not in (*IMAGENET, *COMBINATIONS):
        network = TrainedBackbone.load(name, COMBINATIONS)
        return _checked(TorchEmbedder(network, _of_torch(name, precision, device), device))
    if name in COMBINATIONS:
        parts = [_load(part, precision, device) for part in COMBINATIONS[name]]
        return Concatenated(name, parts)
    if precision == "int8" and (problem := _no_int8(device)):
        raise OptionError(f"precision 'int8' cannot be used: {problem}; use 'auto'.")
    if precision == "auto" and device == "cpu":
        precision = "float32" if _no_int8(device) else "int8"
    if device == "cpu" and precision != "bfloat16":
        return LiteEmbedder(name, precision)
    network = TrainedBackbone.load(name)
    return TorchEmbedder(network, _of_torch(name, precision, device), device)


def _of_torch(name: str, precision: str, device: str) -> str:
    """The precision of a network that torch computes."""
    if precision == "int8":
        have = ", ".join((*IMAGENET, *COMBINATIONS))
        raise OptionError(f"{name} has no int8 version; {have} have one. Use 'auto'.")
    return "bfloat16" if uses_bfloat16(precision, device) else "float32"


def _no_int8(device: str) -> str:
    """Why eight-bit integers cannot be used; empty if they can."""
    if device != "cpu":
        return f"it is for the cpu, and the device is {device}"
    if not sums_bytes_exactly():
        return "this processor lacks instructions for it (VNNI, AMX or ARM's dot product)"
    return ""
