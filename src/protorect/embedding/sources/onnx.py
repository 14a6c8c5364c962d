"""Features by an ONNX file, run by onnxruntime."""

import hashlib
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.files import read_errors, sha256_of_file
from protorect._utils.parameters import LARGEST_SIZE, Parameters, parameter
from protorect.backbones.inference import convert
from protorect.backbones.preprocessing import Preprocessing
from protorect.errors import DataError, OptionError, needs_extra


class OnnxOptions(Parameters):
    """How pictures are given to a network in an ONNX file; the defaults are ImageNet's."""

    kind: ClassVar[str] = "option of onnx:"

    mean: tuple[float, ...] = parameter(
        (0.485, 0.456, 0.406),
        "Subtracted from pixels in 0 .. 1; one number, or one per channel.",
        maximum=1,
    )
    std: tuple[float, ...] = parameter(
        (0.229, 0.224, 0.225),
        "Divides the pixels after that; one number, or one per channel.",
        above=0,
    )
    size: int = parameter(
        224,
        "Pixels per side of the pictures, where the file does not say it.",
        minimum=1,
        maximum=LARGEST_SIZE,
    )


class OnnxEmbedder:
    """A network in an ONNX file, `PATH` or with `OnnxOptions`: `PATH:mean=0.5,std=0.3/0.2/0.2`."""

    def __init__(self, spelling: str) -> None:
        self._spelling = spelling
        path, options = _parse(spelling)
        self._session, file_digest = _session(path)
        self._input = self._session.get_inputs()[0]
        shape = [side if isinstance(side, int) else None for side in self._input.shape]
        if len(shape) != 4 or self._input.type not in ("tensor(float)", "tensor(uint8)"):
            raise DataError(
                f"{path} takes {self._input.type} of shape {self._input.shape}; a network of "
                "pictures takes floats (n, channels, height, width)."
            )
        self._channels_last = shape[3] in (1, 3) and shape[1] not in (1, 3)
        height, channels = (shape[1], shape[3]) if self._channels_last else (shape[2], shape[1])
        self.size = height or options.size
        self.channels = channels or 3
        mean = _per_channel("mean", options.mean, self.channels)
        std = _per_channel("std", options.std, self.channels)
        self._preprocessing = Preprocessing(mean, std)
        determined_by = f"{file_digest} {self.size} {mean} {std}"
        self.digest = hashlib.sha256(determined_by.encode()).hexdigest()
        self.origin = {
            "backbone": f"onnx:{path.name}",
            "weights": file_digest,
            "size": self.size,
            "mean": list(mean),
            "std": list(std),
            "inverted": False,
            "precision": "of the file",
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles have the path; they read the file again."""
        return type(self), (self._spelling,)

    def suited_to(self, _: object) -> Self:
        """The same network: a file does not say whether it expects bright strokes."""
        return self

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""
        images = convert(torch.from_numpy(np.array(pictures)), self.channels, self.size)
        floats = self._input.type == "tensor(float)"
        images = self._preprocessing(images).float() if floats else (255 * images).round().byte()
        images = images.permute(0, 2, 3, 1) if self._channels_last else images
        batch: NDArray[Any] = images.contiguous().numpy()
        fixed = self._input.shape[0]
        size = fixed if isinstance(fixed, int) else len(batch)
        padding = np.zeros((-len(batch) % size, *batch.shape[1:]), batch.dtype)
        padded = np.concatenate([batch, padding])
        features = [self._run(padded[i : i + size]) for i in range(0, len(padded), size)]
        return np.concatenate(features)[: len(batch)]

    def _run(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        output = np.asarray(self._session.run(None, {self._input.name: batch})[0], np.float32)
        if output.ndim == 4:  # a feature map: its mean over the positions
            output = output.mean(axis=(1, 2) if self._channels_last else (2, 3))
        return output.reshape(len(batch), -1)


def _session(path: Path) -> tuple[Any, str]:
    with needs_extra("onnx: networks need onnxruntime", "onnx"):
        import onnxruntime
    with read_errors(path):
        digest = sha256_of_file(path)
    try:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the cores work on different pictures
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the exceptions of onnxruntime have no other common parent
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} is no ONNX network that can be run: {reason}") from error
    return session, digest


def _parse(spelling: str) -> tuple[Path, OnnxOptions]:
    start, colon, rest = spelling.partition(".onnx:")
    path = Path(start + ".onnx" if colon else spelling)
    return path, OnnxOptions(**OnnxOptions.parse(filter(None, rest.split(","))))


def _per_channel(name: str, values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    if len(values) == 1:
        return values * channels
    if channels == 1:
        return (sum(values) / len(values),)
    if len(values) != channels:
        raise OptionError(f"{name} has {len(values)} numbers for {channels} channels.")
    return values
