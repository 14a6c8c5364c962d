"""Few-shot image classification by prototype rectification (BD-CSPN).

clf = protorect.BDCSPN().fit(X_support, y_support, X_unlabeled=X_query)
clf.transduction_

results = protorect.evaluate(features, labels, methods=["cspn", "bd-cspn"], shot=[1, 5])

predictions = protorect.sort_images("examples", "photos")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protorect.errors import DataError, MissingExtraError, OptionError, ProtorectError
    from protorect.estimators.prototypes import BDCSPN, CSPN
    from protorect.evaluation.episodes import Episodes, sample_episodes
    from protorect.evaluation.evaluate import Result, evaluate
    from protorect.evaluation.features import load_features, save_features
    from protorect.labeling.classifier import ImageClassifier, sort_images
    from protorect.labeling.predictions import Predictions
    from protorect.methods import METHODS, Method, method
    from protorect.uncertainty.thresholds import Thresholds

__version__ = "0.1.0"

# Names are imported when first used, so that `protorect --help` need not wait for torch.
_HOMES = {
    "BDCSPN": "estimators.prototypes",
    "CSPN": "estimators.prototypes",
    "DataError": "errors",
    "Episodes": "evaluation.episodes",
    "ImageClassifier": "labeling.classifier",
    "METHODS": "methods",
    "Method": "methods",
    "MissingExtraError": "errors",
    "OptionError": "errors",
    "Predictions": "labeling.predictions",
    "ProtorectError": "errors",
    "Result": "evaluation.evaluate",
    "Thresholds": "uncertainty.thresholds",
    "evaluate": "evaluation.evaluate",
    "load_features": "evaluation.features",
    "method": "methods",
    "sample_episodes": "evaluation.episodes",
    "save_features": "evaluation.features",
    "sort_images": "labeling.classifier",
}

__all__ = [
    "BDCSPN",
    "CSPN",
    "METHODS",
    "DataError",
    "Episodes",
    "ImageClassifier",
    "Method",
    "MissingExtraError",
    "OptionError",
    "Predictions",
    "ProtorectError",
    "Result",
    "Thresholds",
    "evaluate",
    "load_features",
    "method",
    "sample_episodes",
    "save_features",
    "sort_images",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'protorect' has no attribute {name!r}")
    value = getattr(import_module(f"protorect.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
