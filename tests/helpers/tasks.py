"""Few-shot tasks of clusters."""

import numpy as np

from helpers.clusters import clusters


def task(ways=6, shots=5, each=40, spread=1.6, foreign=0, seed=0):
    """Examples and a pile of clusters, the last classes foreign."""
    features, labels = clusters(ways + foreign, each + shots, 32, spread, seed)
    place = np.tile(np.arange(each + shots), ways + foreign)
    known, example = labels < ways, place < shots
    support = known & example
    return features[support], labels[support], features[~example], labels[~example]
