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
    from protorect.episodes import Episodes, sample_episodes
    from protorect.errors import DataError, MissingExtraError, OptionError, ProtorectError
    from protorect.estimators import BDCSPN, CSPN
    from protorect.evaluation import Result, evaluate
    from protorect.features import load_features, save_features
    from protorect.labelling.classifier import ImageClassifier, sort_images
    from protorect.labelling.predictions import Predictions
    from protorect.labelling.thresholds import Thresholds
    from protorect.methods import METHODS, Method, method

__version__ = "0.1.0"

# Names are imported when first used, so that `protorect --help` need not wait for torch.
_HOMES = {
    "BDCSPN": "estimators",
    "CSPN": "estimators",
    "DataError": "errors",
    "Episodes": "episodes",
    "ImageClassifier": "labelling.classifier",
    "METHODS": "methods",
    "Method": "methods",
    "MissingExtraError": "errors",
    "OptionError": "errors",
    "Predictions": "labelling.predictions",
    "ProtorectError": "errors",
    "Result": "evaluation",
    "Thresholds": "labelling.thresholds",
    "evaluate": "evaluation",
    "load_features": "features",
    "method": "methods",
    "sample_episodes": "episodes",
    "save_features": "features",
    "sort_images": "labelling.classifier",
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
