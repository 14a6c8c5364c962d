"""Features by a backbone in torch."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray

from protorect.backbones.folding import folded
from protorect.backbones.fusing import fused
from protorect.backbones.inference import embed, laid_out, uses_bfloat16
from protorect.embedding import Extractor
from protorect.errors import OptionError


class BackboneEmbedder:
    """A backbone with its weights, on a device, in one precision."""

    def __init__(self, extractor: Extractor, precision: str, device: str) -> None:
        made_by = f"{extractor.digest} {extractor.preprocessing}"
        self._backbone = folded(extractor.backbone)
        try:
            laid_out(self._backbone, device, torch.channels_last)
        except (RuntimeError, AssertionError) as error:  # what torch raises differs by device
            reason = str(error).splitlines()[0]
            raise OptionError(f"device {device!r} cannot be used: {reason}") from error
        self.size = extractor.backbone.size
        self.channels = extractor.backbone.channels
        self._preprocessing = extractor.preprocessing
        self._half = uses_bfloat16(precision, device)
        self._device = device
        if not self._half and torch.device(device).type == "cpu":
            self._backbone = fused(self._backbone)
        self.digest = hashlib.sha256(f"{made_by} {self.size} {self._half}".encode()).hexdigest()

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, size, size, channels)."""
        return embed(
            self._backbone,
            pictures,
            self._preprocessing,
            half=self._half,
            device=self._device,
        )
