"""EfficientNet-Lite on the CPU: onnxruntime computes it in float32 or in eight-bit integers.

Each picture is computed alone: its maps fit the caches, which those of several do not.
"""

from hashlib import sha256
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from protorect.backbones.efficientnet_lite import MEAN, STD, EfficientNetLite
from protorect.backbones.export import PIXELS, export
from protorect.backbones.quantized import quantized_network
from protorect.backbones.registry import BACKBONES
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources.embedder import fitted
from protorect.embedding.sources.session import open_session
from protorect.embedding.sources.torch_network import origin_of, torch_digest


class LiteEmbedder:
    """A pretrained network by its name, in the precision "float32" or "int8"."""

    channels, device, block = 3, "cpu", 1

    def __init__(self, name: str, precision: str) -> None:
        self._name, self._precision = name, precision
        self.size = BACKBONES[name].size
        model = self._quantized() if precision == "int8" else self._exported()
        self._session = open_session(model)

    def _quantized(self) -> bytes:
        model = quantized_network(self._name).read_bytes()
        digest = sha256(model).hexdigest()
        self.digest = sha256(f"{digest} int8".encode()).hexdigest()
        self.origin = {
            "backbone": self._name,
            "weights": digest,
            "size": self.size,
            "mean": [MEAN] * 3,
            "std": [STD] * 3,
            "inverted": False,
            "precision": "int8",
        }
        return model

    def _exported(self) -> bytes:
        network = TrainedBackbone.load(self._name)
        assert isinstance(network.backbone, EfficientNetLite)
        weights, preprocessing = network.digest, network.preprocessing
        self.digest = torch_digest(weights, preprocessing, self.size, False)
        self.origin = origin_of(network.backbone, weights, preprocessing) | {"precision": "float32"}
        return export(network.backbone)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles have the name; they load the network again."""
        return type(self), (self._name, self._precision)

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""
        pixels = fitted(pictures, self.size)
        rows = [self._session.run(None, {PIXELS: one[None]})[0] for one in pixels]
        return np.concatenate(rows)

    def suited_to(self, _: object) -> Self:
        """The same network: it was trained on photographs."""
        return self
