"""Few-shot accuracy on the validation classes, by which the best epoch is chosen."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from protorect.backbones.base import Backbone
from protorect.backbones.inference import embed
from protorect.backbones.preprocessing import Preprocessing
from protorect.datasets.packed import PackedDataset, PackedSplit
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.sampling import sample_episodes
from protorect.training.config import TrainingConfig


@dataclass(frozen=True)
class Validation:
    """Pictures of the validation classes, and the episodes used after every epoch."""

    pictures: PackedSplit
    episodes: Episodes

    @classmethod
    def of(cls, data: PackedDataset, config: TrainingConfig) -> Self | None:
        """5-way 5-shot episodes; smaller ones where there are not enough classes or pictures.

        None where there are not two validation classes with two pictures each.
        """
        if "val" not in data.splits:
            return None
        pictures = data.split("val")
        _, sizes = np.unique(pictures.labels, return_counts=True)
        way, smallest = min(5, len(sizes)), int(sizes.min())
        if way < 2 or smallest < 2:
            return None
        shot = min(5, smallest - 1)
        episodes = sample_episodes(
            pictures.labels,
            way=way,
            shot=shot,
            query=min(15, smallest - shot),
            episodes=config.validation_episodes,
            seed=config.seed,
        )
        return cls(pictures, episodes)

    def accuracy(
        self,
        backbone: Backbone,
        preprocessing: Preprocessing,
        *,
        bfloat16: bool,
        device: str | torch.device,
    ) -> dict[str, float]:
        """Accuracy in percent and its 95 % interval, named as in the log."""
        images, labels = self.pictures.images, self.pictures.labels
        features = embed(backbone, images, preprocessing, bfloat16=bfloat16, device=device)
        result = evaluate(features, labels, "cspn", episodes=self.episodes)[0]
        return {"validation": result.accuracy, "validation_ci95": result.ci95}
