"""Few-shot tasks of clusters."""

import numpy as np

from helpers.clusters import clusters


def task(ways=6, shots=5, each=40, spread=1.6, distractors=0, seed=0):
    """Support, its labels, unlabeled samples and their classes, the last classes distractors."""
    features, labels = clusters(ways + distractors, each + shots, 32, spread, seed)
    number = np.tile(np.arange(each + shots), ways + distractors)
    known, example = labels < ways, number < shots
    support = known & example
    return features[support], labels[support], features[~example], labels[~example]
