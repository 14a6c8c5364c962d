"""Networks that turn pictures into features, by name, and the classifier they are trained with.

`build("conv64", channels=1, size=28)` is a module (n, 1, 28, 28) -> (n, dim); see `Backbone`.
"""

from protorect.backbones.base import Backbone
from protorect.backbones.cosine_head import CosineClassifier
from protorect.backbones.registry import BACKBONES, Spec, build

__all__ = ["BACKBONES", "Backbone", "CosineClassifier", "Spec", "build"]
