"""What every network that embeds pictures can do, its options, and networks made of others."""

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.parameters import Parameters, parameter
from protorect.backbones.inference import convert
from protorect.backbones.preprocessing import Preprocessing


class Embedder(Protocol):
    """Maps pictures to features; several threads may call it at once, and it can be pickled."""

    digest: str  # of everything that determines its features: weights, preprocessing, precision
    origin: dict[str, Any]  # the same in words and numbers, to record with the features
    size: int  # of the pictures that are decoded for it
    channels: int
    device: str = "cpu"  # where it computes
    block: int = 1  # pictures per call that keep the device busy

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""

    def suited_to(self, mean: Callable[[], Sequence[float]]) -> Self:
        """The same network for pictures of this mean, which is called only if it matters.

        It matters if the network is known to be trained on drawings.
        """
        return self


class NetworkOptions(Parameters):
    """Options of every network."""

    kind: ClassVar[str] = "option of a network"

    mirror: bool = parameter(
        False,
        "Average the features of a picture and of its mirror image, which takes twice the time.",
    )


Options = TypeVar("Options", bound=NetworkOptions)


def parse_options(spelling: str, described: type[Options]) -> tuple[str, Options]:
    """A name and its options; a path may have colons."""
    name, colon, items = spelling.rpartition(":")
    if not colon or "=" not in items or os.path.exists(spelling):
        name, items = spelling, ""
    return name, described(**described.parse(filter(None, items.split(","))))


class Mirrored(Embedder):
    """The mean of a network's features of each picture and of its mirror image."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.size, self.channels = embedder.size, embedder.channels
        self.device, self.block = embedder.device, embedder.block
        self.digest = digest_of("mirrored", embedder.digest)
        self.origin = embedder.origin | {"mirror": True}

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""
        mirrored = np.ascontiguousarray(pictures[:, :, ::-1])
        return np.asarray((self._embedder(pictures) + self._embedder(mirrored)) / 2, np.float32)

    def suited_to(self, mean: Callable[[], Sequence[float]]) -> Self:
        """The same network for pictures of this mean."""
        return type(self)(self._embedder.suited_to(mean))


class Concatenated(Embedder):
    """The features of several networks side by side, those of each with unit length."""

    def __init__(self, name: str, embedders: Sequence[Embedder]) -> None:
        self._name, self._embedders = name, tuple(embedders)
        largest = max(embedders, key=lambda one: one.size)
        self.size, self.channels = largest.size, largest.channels
        self.device, self.block = largest.device, min(one.block for one in embedders)
        self.digest = digest_of("concatenated", *(one.digest for one in embedders))
        weights = digest_of(*(one.origin["weights"] for one in embedders))
        self.origin = largest.origin | {"backbone": name, "weights": weights}

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""
        parts = [embedder(pictures) for embedder in self._embedders]
        lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in parts]
        units = [p / np.where(n > 0, n, 1) for p, n in zip(parts, lengths, strict=True)]
        return np.concatenate(units, axis=1)

    def suited_to(self, mean: Callable[[], Sequence[float]]) -> Self:
        """The same networks for pictures of this mean."""
        return type(self)(self._name, [one.suited_to(mean) for one in self._embedders])


def described(embedder: Embedder) -> str:
    """Name, precision and device, such as "efficientnet-lite2 in int8 on cpu"."""
    origin = embedder.origin
    mirrored = ", mirrored" if origin.get("mirror") else ""
    return f"{origin['backbone']} in {origin['precision']} on {embedder.device}{mirrored}"


def fitted(pictures: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Pictures as color bytes (n, size, size, 3), resized where needed."""
    if pictures.shape[1:] == (size, size, 3):
        return np.ascontiguousarray(pictures)
    images = convert(torch.from_numpy(np.array(pictures)), 3, size)
    rounded = images.mul(255).round_().clamp_(0, 255).byte()
    return np.asarray(rounded.permute(0, 2, 3, 1).contiguous())


def digest_of(*parts: object) -> str:
    """SHA-256 of the parts as text: what identifies features in caches and classifiers."""
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()


def origin_of(name: str, weights: str, size: int, preprocessing: Preprocessing) -> dict[str, Any]:
    """A network with weights of this digest and its preprocessing, as a feature file has them."""
    return {
        "backbone": name,
        "weights": weights,
        "size": size,
        "mean": list(preprocessing.mean),
        "std": list(preprocessing.std),
        "inverted": preprocessing.inverted,
    }
