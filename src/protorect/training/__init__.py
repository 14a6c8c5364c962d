"""Training of a feature extractor with a cosine classifier on base classes."""

from protorect.training.config import TrainingConfig, read_config
from protorect.training.loop import train

__all__ = ["TrainingConfig", "read_config", "train"]
