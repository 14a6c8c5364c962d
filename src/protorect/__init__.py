"""Few-shot image classification by prototype rectification (BD-CSPN).

clf = protorect.FewShotClassifier().fit(X_support, y_support, X_unlabeled=X_query)
clf.transduction_

results = protorect.evaluate(features, labels, methods=["cspn", "bd-cspn"], shot=[1, 5])

predictions = protorect.sort_images("examples", "photos")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers and editors, which do not follow __getattr__
    from protorect.datasets.prepare import prepare as prepare
    from protorect.embedding.extract import extract as extract
    from protorect.errors import (
        ConflictError as ConflictError,
        DataError as DataError,
        MissingExtraError as MissingExtraError,
        NotFoundError as NotFoundError,
        OptionError as OptionError,
        PartialError as PartialError,
        ProtorectError as ProtorectError,
    )
    from protorect.estimators.bd_cspn import BDCSPN as BDCSPN, CSPN as CSPN
    from protorect.estimators.few_shot import FewShotClassifier as FewShotClassifier
    from protorect.evaluation.compare import compare as compare
    from protorect.evaluation.episodes import Episodes as Episodes
    from protorect.evaluation.evaluate import evaluate as evaluate
    from protorect.evaluation.features import (
        FeatureTable as FeatureTable,
        load_features as load_features,
        save_features as save_features,
    )
    from protorect.evaluation.result import Result as Result
    from protorect.evaluation.sampling import sample_episodes as sample_episodes
    from protorect.labeling.classifier import (
        ImageClassifier as ImageClassifier,
        sort_images as sort_images,
    )
    from protorect.labeling.predictions import Predictions as Predictions
    from protorect.labeling.session import LabelingSession as LabelingSession
    from protorect.methods import (
        METHODS as METHODS,
        Fitted as Fitted,
        Method as Method,
        get_method as get_method,
        method as method,
    )
    from protorect.training.config import TrainingConfig as TrainingConfig
    from protorect.training.loop import train as train
    from protorect.uncertainty.thresholds import Thresholds as Thresholds

__version__ = "0.1.0"

# The public names of each module, which is imported when one of them is first used, so that
# `protorect --help` need not wait for torch.
_NAMES = {
    "errors": (
        "ConflictError",
        "DataError",
        "MissingExtraError",
        "NotFoundError",
        "OptionError",
        "PartialError",
        "ProtorectError",
    ),
    "datasets.prepare": ("prepare",),
    "embedding.extract": ("extract",),
    "estimators.bd_cspn": ("BDCSPN", "CSPN"),
    "estimators.few_shot": ("FewShotClassifier",),
    "evaluation.compare": ("compare",),
    "evaluation.episodes": ("Episodes",),
    "evaluation.evaluate": ("evaluate",),
    "evaluation.features": ("FeatureTable", "load_features", "save_features"),
    "evaluation.result": ("Result",),
    "evaluation.sampling": ("sample_episodes",),
    "labeling.classifier": ("ImageClassifier", "sort_images"),
    "labeling.predictions": ("Predictions",),
    "labeling.session": ("LabelingSession",),
    "methods": ("METHODS", "Fitted", "Method", "get_method", "method"),
    "training.config": ("TrainingConfig",),
    "training.loop": ("train",),
    "uncertainty.thresholds": ("Thresholds",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'protorect' has no attribute {name!r}")
    value = getattr(import_module(f"protorect.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
