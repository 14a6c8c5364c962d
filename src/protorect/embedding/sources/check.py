"""A network of a user is tried on two pictures before it is used."""

import numpy as np

from protorect.embedding.sources.embedder import Embedder
from protorect.errors import DataError

MOST_FEATURES = 100_000  # of one picture


def checked(embedder: Embedder) -> Embedder:
    """The network; DataError if it gives no features, or the same for every picture."""
    shape = (2, embedder.size, embedder.size, embedder.channels)
    noise = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    features = embedder(noise)
    name = embedder.origin["backbone"]
    if features.ndim != 2 or not 1 <= features.shape[1] <= MOST_FEATURES:
        raise DataError(
            f"{name} gives {features.size // 2:,} numbers per picture; a network that embeds "
            f"pictures gives 1 to {MOST_FEATURES:,}."
        )
    if not np.isfinite(features).all():
        raise DataError(f"{name} gives features that are not finite numbers; use another network.")
    if (features[0] == features[1]).all():
        raise DataError(f"{name} gives the same features for every picture; use another network.")
    return embedder
