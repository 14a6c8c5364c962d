"""The plan of the demonstration, checked before the work begins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from protorect.evaluation.episodes import Episodes, sample_episodes
from protorect.paper.published import SHOTS
from protorect.training import TrainingConfig

BASE, NOVEL = (0, 1, 2, 3, 4), (5, 6, 7, 8, 9)  # the first half to train on, the second to test on
WAY, QUERY = len(NOVEL), 15
EPOCHS, EPISODES = 8, 600
# Size, turns and rates were chosen with the halves swapped: trained on 5 to 9, tested on 0 to 4.
_STEPS, _BATCH, _HIGHEST_RATE = 20, 64, 0.02


class Plan(NamedTuple):
    """A training, and the episodes of the novel digits, all from one seed."""

    seed: int
    recipe: TrainingConfig
    episodes: Episodes

    @classmethod
    def of(cls, episodes: int = EPISODES, epochs: int = EPOCHS, seed: int = 0) -> Plan:
        """Plan numbers of episodes and epochs; raise OptionError for an invalid one."""
        recipe = TrainingConfig(
            backbone="conv64",
            seed=seed,
            epochs=epochs,
            batch_size=_BATCH,
            steps_per_epoch=_STEPS,
            rates=((0, _HIGHEST_RATE / 10), (0.3 * epochs, _HIGHEST_RATE), (epochs, 0)),
            between_rates="linear",
            flip=False,  # a mirrored digit is not a digit
            precision="float32",
        )
        sampled = sample_episodes(
            novel_labels(), way=WAY, shot=max(SHOTS), query=QUERY, episodes=episodes, seed=seed
        )
        return cls(seed, recipe, sampled)


def novel_labels() -> NDArray[np.int64]:
    """Labels (n,) of the novel digits in the order in which they are packed: class after class."""
    labels = load_digits().target
    return np.sort(labels[np.isin(labels, NOVEL)])
