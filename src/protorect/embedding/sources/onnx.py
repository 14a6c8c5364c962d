"""Features by an ONNX file of the user, run by onnxruntime."""

import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.files import open_file, sha256_of_file
from protorect._utils.parameters import LARGEST_SIZE, parameter
from protorect.backbones.inference import convert
from protorect.backbones.preprocessing import Preprocessing
from protorect.embedding.sources.embedder import Embedder, NetworkOptions, digest_of, origin_of
from protorect.embedding.sources.session import open_session
from protorect.errors import DataError, OptionError

_LARGEST_BATCH = 256  # that a file may insist on
_INPUTS = ("tensor(float)", "tensor(uint8)")
_OUTPUTS = ("tensor(float)", "tensor(float16)", "tensor(double)")


class OnnxOptions(NetworkOptions):
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


class OnnxEmbedder(Embedder):
    """A network in an ONNX file with its options."""

    def __init__(self, path: Path, options: OnnxOptions) -> None:
        self._path, self._options = path, options
        self._session, file_digest = _session(path)
        self._input = _only_input(self._session, path)
        self._channels_last, self.size, self.channels = _layout(self._input.shape, path, options)
        mean = _per_channel("mean", options.mean, self.channels)
        std = _per_channel("std", options.std, self.channels)
        self._preprocessing = Preprocessing(mean, std)
        self.digest = digest_of(file_digest, self.size, mean, std)
        origin = origin_of(f"onnx:{path.name}", file_digest, self.size, self._preprocessing)
        self.origin = origin | {"precision": "of the file"}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles have the path; they read the file again."""
        return type(self), (self._path, self._options)

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
        try:
            first = self._session.get_outputs()[0].name
            output = np.asarray(self._session.run([first], {self._input.name: batch})[0])
        except Exception as error:  # the exceptions of onnxruntime have no other common parent
            raise DataError(
                f"{self._path} cannot be run on pictures of {self.size} x {self.size}: "
                f"{_reason(error)}. If it needs another size: onnx:PATH:size=N."
            ) from error
        if output.ndim == 0 or len(output) != len(batch):
            raise DataError(
                f"{self._path} gives {output.shape} for {len(batch)} pictures; a network that "
                "embeds pictures gives one row for each."
            )
        if output.ndim == 4:  # a feature map: its mean over the positions
            output = output.mean(axis=(1, 2) if self._channels_last else (2, 3))
        return output.reshape(len(batch), -1).astype(np.float32)


def parse_onnx(spelling: str) -> tuple[Path, OnnxOptions]:
    """The path and the options of `PATH` or `PATH:mean=0.5,std=0.3/0.2/0.2`."""
    start, colon, rest = spelling.partition(".onnx:")
    path = Path(start + ".onnx" if colon else spelling)
    return path, OnnxOptions(**OnnxOptions.parse(filter(None, rest.split(","))))


def _session(path: Path) -> tuple[Any, str]:
    with open_file(path):  # of a pipe or a device there is no end
        digest = sha256_of_file(path)
    try:
        return open_session(path), digest
    except Exception as error:  # the exceptions of onnxruntime have no other common parent
        raise DataError(f"{path} is no ONNX network that can be run: {_reason(error)}") from error


def _only_input(session: Any, path: Path) -> Any:
    """The input of a network that maps pictures to numbers."""
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1:
        names = ", ".join(one.name for one in inputs)[:100] or "none"
        raise DataError(f"{path} has {len(inputs)} inputs ({names}); it must have one, pictures.")
    (only,) = inputs
    if len(only.shape) != 4 or only.type not in _INPUTS:
        raise DataError(
            f"{path} takes {only.type} of shape {only.shape}; a network of "
            "pictures takes floats (n, channels, height, width)."
        )
    if not outputs:
        raise DataError(f"{path} has no output; a network that embeds pictures gives floats.")
    if outputs[0].type not in _OUTPUTS:
        raise DataError(
            f"{path} gives {outputs[0].type} ({outputs[0].name}); a network that embeds pictures "
            "gives floats: remove what follows its features."
        )
    return only


def _layout(shape: list[Any], path: Path, options: OnnxOptions) -> tuple[bool, int, int]:
    """Whether channels are last, the size and the number of channels of an input."""
    sides = [side if isinstance(side, int) else None for side in shape]  # None: any
    channels_last = sides[3] in (1, 3) and sides[1] not in (1, 3)
    channels, height, width = (sides[3], *sides[1:3]) if channels_last else sides[1:]
    size = options.size if height is None else height
    fits = (
        sides[0] is None or 1 <= sides[0] <= _LARGEST_BATCH,
        channels in (None, 1, 3),
        width in (None, size) and 1 <= size <= LARGEST_SIZE,
    )
    if not all(fits):
        raise DataError(
            f"{path} takes pictures of shape {shape}; it must take 1 or 3 channels, squares of 1 "
            f"to {LARGEST_SIZE} pixels per side, and any number of them or up to {_LARGEST_BATCH}."
        )
    return channels_last, size, channels or 3


def _reason(error: Exception) -> str:
    """What onnxruntime says, without the lines of its source code."""
    text = re.sub(r"/\S+\.(?:cc|h):\d+ ", "", " ".join(str(error).split()))
    return text[:200].rstrip(".")


def _per_channel(name: str, values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    if len(values) == 1:
        return values * channels
    if channels == 1:
        return (sum(values) / len(values),)
    if len(values) != channels:
        raise OptionError(f"{name} has {len(values)} numbers for {channels} channels.")
    return values
