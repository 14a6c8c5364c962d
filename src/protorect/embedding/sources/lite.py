"""EfficientNet-Lite on the CPU: onnxruntime computes it in float32 or in eight-bit integers.

Each picture is computed alone: its maps fit the caches, which those of several do not.
"""

from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.backbones.efficientnet_lite import MEAN, STD, EfficientNetLite
from protorect.backbones.export import PIXELS, export
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.quantized import quantized_network
from protorect.backbones.registry import BACKBONES
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources.embedder import Embedder, digest_of, fitted, origin_of
from protorect.embedding.sources.session import open_session


class LiteEmbedder(Embedder):
    """A pretrained network by its name, in the precision "float32" or "int8"."""

    channels = 3

    def __init__(self, name: str, precision: str) -> None:
        self._name, self._precision = name, precision
        self.size = BACKBONES[name].size
        if precision == "int8":
            model = quantized_network(name).read_bytes()
            weights = sha256(model).hexdigest()
            preprocessing = Preprocessing((MEAN,) * 3, (STD,) * 3)
            self.digest = digest_of(weights, "int8")
        else:
            network = TrainedBackbone.load(name)
            assert isinstance(network.backbone, EfficientNetLite)
            model = export(network.backbone)
            weights, preprocessing = network.digest, network.preprocessing
            self.digest = digest_of(weights, preprocessing, self.size, False)  # as with torch
        self.origin = origin_of(name, weights, self.size, preprocessing) | {"precision": precision}
        self._session = open_session(model)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles have the name; they load the network again."""
        return type(self), (self._name, self._precision)

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of pictures (n, height, width, channels), resized where needed."""
        pixels = fitted(pictures, self.size)
        rows = [self._session.run(None, {PIXELS: one[None]})[0] for one in pixels]
        return np.concatenate(rows)
