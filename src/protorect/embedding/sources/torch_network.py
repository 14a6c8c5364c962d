"""Trained backbones, computed by torch on any device."""

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from protorect.backbones.base import Backbone
from protorect.backbones.inference import batch_size, embed, optimize
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.weights import TrainedBackbone


class TorchEmbedder:
    """A trained backbone, optimized for inference on a device in float32 or bfloat16."""

    def __init__(self, network: TrainedBackbone, precision: str, device: str) -> None:
        self._bfloat16, self.device = precision == "bfloat16", device
        self._weights = network.digest
        optimized = optimize(network.backbone, device=device)
        self._network = replace(network, backbone=optimized, base_classifier=None)
        self.size, self.channels = network.backbone.size, network.backbone.channels
        self._batch = batch_size(optimized, device)
        self.block = 1 if device == "cpu" else self._batch
        self._use(network.preprocessing)

    def _use(self, preprocessing: Preprocessing) -> None:
        self._preprocessing = preprocessing
        self.digest = torch_digest(self._weights, preprocessing, self.size, self._bfloat16)
        self.origin = origin_of(self._network.backbone, self._weights, preprocessing)
        self.origin["precision"] = "bfloat16" if self._bfloat16 else "float32"

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""
        return embed(
            self._network.backbone,
            pictures,
            self._preprocessing,
            bfloat16=self._bfloat16,
            device=self.device,
            batch=self._batch,
        )

    def suited_to(self, mean: Callable[[], Sequence[float]]) -> Self:
        """The same network; it exchanges dark and bright if `preprocessing_for` says so."""
        if not self._network.bright_on_dark:
            return self
        suited = copy.copy(self)
        suited._use(self._network.preprocessing_for(mean()))
        return suited


def torch_digest(weights: str, preprocessing: Preprocessing, size: int, bfloat16: bool) -> str:
    """What identifies the features of a backbone in caches and classifiers."""
    return hashlib.sha256(f"{weights} {preprocessing} {size} {bfloat16}".encode()).hexdigest()


def origin_of(backbone: Backbone, weights: str, preprocessing: Preprocessing) -> dict[str, Any]:
    """A network with weights of this digest and its preprocessing, as a feature file has them."""
    return {
        "backbone": backbone.name,
        "weights": weights,
        "size": backbone.size,
        "mean": list(preprocessing.mean),
        "std": list(preprocessing.std),
        "inverted": preprocessing.inverted,
    }
