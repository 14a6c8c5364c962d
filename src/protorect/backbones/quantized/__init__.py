"""EfficientNet-Lite in eight-bit integers, as ONNX files; NOTICE.md says how they were made."""

from pathlib import Path


def quantized_network(name: str) -> Path:
    """The file of a pretrained network in eight-bit integers."""
    return Path(__file__).with_name(f"{name}.int8.onnx")
