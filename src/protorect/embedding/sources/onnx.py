"""Features by an ONNX file, run by onnxruntime."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect._utils.files import sha256_of_file
from protorect.errors import DataError, MissingExtraError, OptionError, unknown_name

DEFAULT_SIZE = 224
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


@dataclass(frozen=True)
class OnnxEmbedder:
    """A network in an ONNX file; mean and std, one number per channel, are for pixels in 0 .. 1."""

    session: Any = field(repr=False)
    digest: str
    size: int
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels_last: bool

    @classmethod
    def load(cls, spelling: str) -> OnnxEmbedder:
        """From `PATH`, or `PATH:mean=0.5,std=0.5,size=224`; `0.5/0.4/0.3` is one per channel."""
        path, options = _parse(spelling)
        session, digest = _session(path)
        model_input = session.get_inputs()[0]
        shape = [side if isinstance(side, int) else None for side in model_input.shape]
        if len(shape) != 4 or model_input.type not in ("tensor(float)", "tensor(uint8)"):
            raise DataError(
                f"{path} takes {model_input.type} of shape {model_input.shape}; a network of "
                "pictures takes floats (n, channels, height, width)."
            )
        channels_last = shape[3] in (1, 3) and shape[1] not in (1, 3)
        channels = shape[3 if channels_last else 1] or 3
        side = shape[1 if channels_last else 2] or int(options.get("size", (DEFAULT_SIZE,))[0])
        mean, std = (_per_channel(options, name, channels) for name in ("mean", "std"))
        digest = hashlib.sha256(f"{digest} {side} {mean} {std}".encode()).hexdigest()
        return cls(session, digest, side, channels, mean, std, channels_last)

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, size, size, channels)."""
        model_input = self.session.get_inputs()[0]
        batch: NDArray[Any] = pictures
        if model_input.type == "tensor(float)":
            scaled = pictures.astype(np.float32) / 255 - np.array(self.mean, np.float32)
            batch = scaled / np.array(self.std, np.float32)
        if not self.channels_last:
            batch = np.ascontiguousarray(batch.transpose(0, 3, 1, 2))
        fixed = model_input.shape[0]
        size = fixed if isinstance(fixed, int) else len(batch)
        padding = np.zeros((-len(batch) % size, *batch.shape[1:]), batch.dtype)
        padded = np.concatenate([batch, padding])
        starts = range(0, len(padded), size)
        features = [self._run(model_input.name, padded[i : i + size]) for i in starts]
        return np.concatenate(features)[: len(batch)]

    def _run(self, name: str, batch: NDArray[Any]) -> NDArray[np.float32]:
        output = np.asarray(self.session.run(None, {name: batch})[0], np.float32)
        if output.ndim == 4:  # a feature map: its mean over the positions
            output = output.mean(axis=(1, 2) if self.channels_last else (2, 3))
        return output.reshape(len(batch), -1)


def _session(path: Path) -> tuple[Any, str]:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(
            "onnx: networks need onnxruntime, which is not installed: "
            "pip install 'protorect[onnx]'."
        ) from error
    try:
        digest = sha256_of_file(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the cores work on different pictures
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # the exceptions of onnxruntime have no other common parent
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} is no ONNX network that can be run: {reason}") from error
    return session, digest


def _parse(spelling: str) -> tuple[Path, dict[str, tuple[float, ...]]]:
    start, colon, rest = spelling.partition(".onnx:")
    path = Path(start + ".onnx" if colon else spelling)
    options: dict[str, tuple[float, ...]] = {}
    for item in filter(None, rest.split(",")):
        name, _, value = item.partition("=")
        if name not in ("mean", "std", "size"):
            raise unknown_name("option of onnx:", name, ("mean", "std", "size"))
        try:
            options[name] = tuple(float(part) for part in value.split("/"))
        except ValueError:
            raise OptionError(
                f"{item}: give a number, or one per channel as in 0.5/0.4/0.3."
            ) from None
    return path, options


def _per_channel(
    options: dict[str, tuple[float, ...]], name: str, channels: int
) -> tuple[float, ...]:
    values = options.get(name, IMAGENET[name])
    if name == "std" and min(values) <= 0:
        raise OptionError(f"std is {min(values):g}; pixels are divided by it, so it is above 0.")
    if len(values) == 1:
        return values * channels
    if channels == 1:
        return (sum(values) / len(values),)
    if len(values) != channels:
        raise OptionError(f"{name} has {len(values)} numbers for {channels} channels.")
    return values
