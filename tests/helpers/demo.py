"""The demonstration on made-up characters, which takes no time."""

import numpy as np

from helpers.clusters import clusters
from protorect.demo.omniglot import METHODS, DemoOptions, OmniglotResult
from protorect.evaluation.sampling import sample_episodes
from protorect.paper.figures import accuracy_over_z


def made_up_omniglot(episodes=20, seed=3) -> OmniglotResult:
    """Gaussian features as characters, far from all of them right."""
    features, labels = clusters(classes=8, each=25, spread=2.0)
    names = tuple(f"Alphabet_of_{i}/character{i:02}/rot{90 * (i % 4):03}" for i in range(8))
    images = np.random.default_rng(0).integers(256, size=(len(labels), 28, 28), dtype=np.uint8)
    tasks = sample_episodes(labels, way=5, shot=5, query=15, episodes=episodes, seed=seed)
    results, _, against_z = accuracy_over_z(features, labels, METHODS, tasks)
    options = DemoOptions(episodes=episodes, seed=seed)
    return OmniglotResult(options, images, names, labels, tasks, results, against_z)
