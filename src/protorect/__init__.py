"""Few-shot image classification by prototype rectification (BD-CSPN).

clf = protorect.BDCSPN().fit(X_support, y_support, X_unlabeled=X_query)
clf.transduction_

results = protorect.evaluate(features, labels, methods=["cspn", "bd-cspn"], shot=[1, 5])

predictions = protorect.sort_images("examples", "photos")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers and editors, which do not follow __getattr__
    from protorect.errors import (
        DataError as DataError,
    )
    from protorect.errors import (
        MissingExtraError as MissingExtraError,
    )
    from protorect.errors import (
        OptionError as OptionError,
    )
    from protorect.errors import (
        ProtorectError as ProtorectError,
    )
    from protorect.estimators.few_shot import FewShotClassifier as FewShotClassifier
    from protorect.estimators.prototypes import BDCSPN as BDCSPN
    from protorect.estimators.prototypes import CSPN as CSPN
    from protorect.evaluation.episodes import (
        Episodes as Episodes,
    )
    from protorect.evaluation.episodes import (
        sample_episodes as sample_episodes,
    )
    from protorect.evaluation.evaluate import evaluate as evaluate
    from protorect.evaluation.features import (
        FeatureTable as FeatureTable,
    )
    from protorect.evaluation.features import (
        load_features as load_features,
    )
    from protorect.evaluation.features import (
        save_features as save_features,
    )
    from protorect.evaluation.result import Result as Result
    from protorect.labeling.classifier import (
        ImageClassifier as ImageClassifier,
    )
    from protorect.labeling.classifier import (
        sort_images as sort_images,
    )
    from protorect.labeling.predictions import Predictions as Predictions
    from protorect.methods import METHODS as METHODS
    from protorect.methods import Method as Method
    from protorect.methods import method as method
    from protorect.uncertainty.thresholds import Thresholds as Thresholds

__version__ = "0.1.0"

# The public names of each module, which is imported when one of them is first used, so that
# `protorect --help` need not wait for torch.
_NAMES = {
    "errors": ("DataError", "MissingExtraError", "OptionError", "ProtorectError"),
    "estimators.few_shot": ("FewShotClassifier",),
    "estimators.prototypes": ("BDCSPN", "CSPN"),
    "evaluation.episodes": ("Episodes", "sample_episodes"),
    "evaluation.evaluate": ("evaluate",),
    "evaluation.features": ("FeatureTable", "load_features", "save_features"),
    "evaluation.result": ("Result",),
    "labeling.classifier": ("ImageClassifier", "sort_images"),
    "labeling.predictions": ("Predictions",),
    "methods": ("METHODS", "Method", "method"),
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
