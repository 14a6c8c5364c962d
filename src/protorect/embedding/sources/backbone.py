"""Features by a backbone of torch."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from protorect._utils.tensors import usable_device
from protorect.backbones.inference import embed, optimize, uses_bfloat16
from protorect.backbones.weights import TrainedBackbone


class BackboneEmbedder:
    """A trained backbone, optimized for inference on a device in one precision."""

    def __init__(self, network: TrainedBackbone, precision: str, device: str) -> None:
        usable_device(device)
        self._bfloat16 = uses_bfloat16(precision, device)
        self._backbone = optimize(network.backbone, bfloat16=self._bfloat16, device=device)
        self.size = network.backbone.size
        self.channels = network.backbone.channels
        self._preprocessing = network.preprocessing
        self._device = device
        origin = f"{network.digest} {network.preprocessing} {self.size} {self._bfloat16}"
        self.digest = hashlib.sha256(origin.encode()).hexdigest()

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, size, size, channels)."""
        return embed(
            self._backbone,
            pictures,
            self._preprocessing,
            bfloat16=self._bfloat16,
            device=self._device,
        )
