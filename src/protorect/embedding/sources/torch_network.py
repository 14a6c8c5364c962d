"""Trained backbones, computed by torch on any device."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from protorect.backbones.inference import batch_size, embed, optimize
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources.embedder import Embedder, digest_of, origin_of


class TorchEmbedder(Embedder):
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
        self.digest = digest_of(self._weights, preprocessing, self.size, self._bfloat16)
        name, precision = self._network.backbone.name, "bfloat16" if self._bfloat16 else "float32"
        origin = origin_of(name, self._weights, self.size, preprocessing)
        self.origin = origin | {"precision": precision}

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
