"""What the scikit-learn classifiers share: inputs, labels, predictions, files."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.core.functional import predictions
from protorect.errors import DataError
from protorect.estimators.inputs import Array, as_labels, encode, objects, to_array

BLOCK_ROWS = 4096
KIND = "estimator"  # of a saved file
_LABEL_TYPE = re.compile(r"[<>|=]?[?biufOSU][0-9]{0,5}")  # of numpy, as in "<U12"


class TransductiveClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A classifier that learns from labeled features and from the unlabeled ones it labels.

    A subclass implements `_fit`, `_scores`, `_state` and `_restore`.
    """

    def fit(self, X: Any, y: Any, X_unlabeled: Any = None) -> Self:
        """Learn the classes from the labeled features, and label X_unlabeled.

        Parameters
        ----------
        X
            (n_support, n_features), the labeled features.
        y
            (n_support,), their labels: strings, whole numbers, or anything hashable in a list.
        X_unlabeled
            (n_unlabeled, n_features), the features to label, or None. Computations are in its
            floating type, as it is usually much larger than X. Learning from it may lower the
            accuracy if it has only a few rows per class.
        """
        self._check_parameters()
        X, y = validate_data(self, to_array(X), as_labels(y), dtype=(np.float64, np.float32))
        classes, codes = encode(y)
        unlabeled = X[:0]
        if X_unlabeled is not None:
            try:
                unlabeled = self._validated(X_unlabeled)
            except ValueError as error:
                raise DataError(f"X_unlabeled: {error}") from error
        self._fit(X, codes, len(classes), unlabeled)
        self.classes_ = classes
        self.transduction_ = self._predicted(unlabeled)
        return self

    def predict(self, X: Any) -> Array:
        """Labels (n,) of features X (n, n_features)."""
        return self._predicted(self._checked(X))

    @abstractmethod
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, n_classes) in the order of `classes_`."""

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes, (n, n_classes), higher is better.

        With two classes (n,), as in scikit-learn: the second score minus the first.
        """
        scores = self._scores(self._checked(X)).numpy()
        return np.asarray(scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file, from which `load` makes a classifier that predicts the same.

        The labels must be strings, numbers, booleans, None or tuples of those.
        """
        check_is_fitted(self, "classes_")
        tensors, own = self._state()
        config = {
            "kind": KIND,
            "class": type(self).__name__,
            "params": self._saved_parameters(),
            "classes": self.classes_.tolist(),
            "classes_dtype": self.classes_.dtype.str,
            "feature_names": list(getattr(self, "feature_names_in_", [])),
        }
        save_tensors(path, tensors, config | own)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote; predictions are equal to the last bit."""
        tensors, config = load_tensors(path, kind=KIND)
        name, expected = config.get("class"), cls.__name__
        if name != expected:
            raise DataError(f"{path} holds a {name}, not a {expected}; load it with {name}.load.")
        try:
            if not _LABEL_TYPE.fullmatch(str(config["classes_dtype"])):
                raise ValueError("its labels are of an unknown type")
            self = cls(**config["params"])
            self.classes_ = objects(config["classes"]).astype(config["classes_dtype"])
            self._restore(tensors, config)
            if config["feature_names"]:
                self.feature_names_in_ = objects(config["feature_names"])
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise DataError(f"{path} holds a damaged {name}: {error}. Save it again.") from error
        return self

    def _saved_parameters(self) -> dict[str, Any]:
        """The parameters of the constructor as a file holds them."""
        return dict(self.get_params())

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise OptionError if a parameter of the constructor is not allowed."""

    @abstractmethod
    def _fit(self, X: Array, codes: Tensor, ways: int, unlabeled: Array) -> None:
        """Fit to labeled features with class numbers 0 .. ways - 1, and to unlabeled ones."""

    @abstractmethod
    def _scores(self, X: Array) -> Tensor:
        """Scores of features, (n, n_classes)."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and configuration of the file that `save` writes."""

    @abstractmethod
    def _restore(self, tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
        """Set the fitted attributes from `_state`; raise ValueError if they do not fit."""

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self, "classes_")
        return self._validated(X)

    def _validated(self, X: Any) -> Array:
        X = validate_data(self, to_array(X), reset=False, dtype=(np.float64, np.float32))
        return np.asarray(X)

    def _predicted(self, X: Array) -> Array:
        return np.asarray(self.classes_[predictions(self._scores(X)).numpy()])


def blocks_of_rows(X: Array, dtype: np.dtype[Any]) -> Iterator[tuple[slice, Tensor]]:
    """Blocks (1, n, n_features) of the rows of X in this type, each after its rows as a slice.

    They are copied to a small buffer. Products are rounded depending on memory layout, so this also
    gives equal features equal scores.
    """
    buffer = torch.from_numpy(np.empty((1, min(len(X), BLOCK_ROWS), X.shape[1]), dtype))
    for start in range(0, len(X), BLOCK_ROWS):
        rows = X[start : start + BLOCK_ROWS]
        block = buffer[:, : len(rows)]
        np.copyto(block[0].numpy(), rows)
        yield slice(start, start + len(rows)), block
