"""scikit-learn classifiers over `protorect.core.functional`: a batch of one task.

Both take numpy arrays, torch tensors and pandas frames, compute in float32 or float64 as the
features come (halves in float32), and answer with whatever hashable labels `y` has.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect._utils.tensors import tensor_of
from protorect.core import functional
from protorect.core.functional import Assignment, Options, Rank, Weighting
from protorect.core.unit_rows import UnitRows
from protorect.errors import DataError, OptionError
from protorect.estimators.labels import as_labels, encode, objects

Array = NDArray[Any]
_BLOCK_ROWS = 4096


class CSPN(ClassifierMixin, BaseEstimator):
    """Cosine similarity prototypical network: the nearest basic prototype, eq. (1) and (3).

    Parameters
    ----------
    scale
        The factor of the cosines in `predict_proba`, tau of eq. (1).

    Attributes
    ----------
    classes_
        (n_classes,), the labels: sorted where they are all strings, all numbers or all booleans,
        otherwise in the order in which they appear.
    prototypes_
        (n_classes, n_features).
    shift_
        (n_features,), what is added to a normalised feature before it is classified: zeros.
    transduction_
        (n_unlabeled,), what `predict` answers for X_unlabeled; empty without it.
    """

    def __init__(self, scale: float = 10.0) -> None:
        self.scale = scale

    def _options(self) -> Options:
        return Options(z=0, shift=False, scale=self.scale)

    def fit(self, X: Any, y: Any, X_unlabeled: Any = None) -> Self:
        """Learn the prototypes of the classes, and label X_unlabeled.

        Parameters
        ----------
        X
            (n_support, n_features), the labelled features.
        y
            (n_support,), their labels: strings, whole numbers, or anything hashable in a list.
        X_unlabeled
            (n_unlabeled, n_features), the features to label, or None. Its floating type is the
            one computed in, as it is usually much larger than X. What it corrects is only as good
            as it is large: with few rows a class, the shift of `BDCSPN` does harm.
        """
        options = self._options()
        X, y = validate_data(self, _array(X), as_labels(y), dtype=(np.float64, np.float32))
        classes, codes = encode(y)
        support, ways = tensor_of(X)[None], len(classes)
        if X_unlabeled is None:
            pile, shift = X[:0], None
            prototypes = functional.basic_prototypes(support, codes, ways)
        else:
            try:
                pile = self._validated(X_unlabeled)
            except ValueError as error:
                raise DataError(f"X_unlabeled: {error}") from error
            query = tensor_of(pile)[None]
            if support.dtype != query.dtype:  # lengths may be out of its range, directions are not
                support = functional.normalize(support).to(query.dtype)
            prototypes, shift, _ = functional.rectify(support, codes, query, ways, options)
        self.classes_ = classes
        self.prototypes_ = prototypes[0].numpy()
        self.shift_ = np.zeros_like(self.prototypes_[0]) if shift is None else shift[0].numpy()
        # Not from the scores of `rectify`: they are rounded otherwise than those of `predict`.
        self.transduction_ = self._predicted(pile)
        return self

    def predict(self, X: Any) -> Array:
        """Labels (n,) of features X (n, n_features)."""
        return self._predicted(self._validated(X))

    def predict_proba(self, X: Any) -> Array:
        """softmax(scale x cosine), eq. (1), as (n, n_classes) in the order of `classes_`."""
        scores = self._scores(self._validated(X))
        return np.asarray(functional.probabilities(scores, self.scale).numpy())

    def decision_function(self, X: Any) -> Array:
        """Cosines with the prototypes, (n, n_classes).

        With two classes it is (n,), as scikit-learn has it: the second cosine less the first.
        """
        cosines = self._scores(self._validated(X)).numpy()
        return np.asarray(cosines[:, 1] - cosines[:, 0] if len(self.classes_) == 2 else cosines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what `predict` needs into one safetensors file; `transduction_` is not kept.

        The labels must be strings, numbers, booleans, None or tuples of those.
        """
        check_is_fitted(self, "prototypes_")
        config = {
            "kind": "estimator",
            "class": type(self).__name__,
            "params": self.get_params(),
            "classes": self.classes_.tolist(),
            "classes_dtype": self.classes_.dtype.str,
            "feature_names": list(getattr(self, "feature_names_in_", [])),
        }
        tensors = {"prototypes": tensor_of(self.prototypes_), "shift": tensor_of(self.shift_)}
        save_tensors(path, tensors, config)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; it predicts what the saved one did, to the last bit."""
        tensors, config = load_tensors(path, kind="estimator")
        found, wanted = config.get("class"), cls.__name__
        if found != wanted:
            raise DataError(f"{path} holds a {found}, not a {wanted}; load it with {found}.load.")
        try:
            self = cls(**config["params"])
            self.classes_ = objects(config["classes"]).astype(config["classes_dtype"])
            self.prototypes_, self.shift_ = tensors["prototypes"].numpy(), tensors["shift"].numpy()
            self.n_features_in_ = len(self.shift_)
            if config["feature_names"]:
                self.feature_names_in_ = objects(config["feature_names"])
            shapes = self.prototypes_.shape, (len(self.classes_), self.n_features_in_)
            if shapes[0] != shapes[1]:
                raise ValueError(f"prototypes of shape {shapes[0]} instead of {shapes[1]}")
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{path} holds a damaged {wanted}: {error}. Save it again.") from error
        return self

    def _validated(self, X: Any) -> Array:
        X = validate_data(self, _array(X), reset=False, dtype=(np.float64, np.float32))
        return np.asarray(X)

    def _predicted(self, X: Array) -> Array:
        codes = functional.predictions(self._scores(X))
        return np.asarray(self.classes_[codes.numpy()])

    def _scores(self, X: Array) -> Tensor:
        """Cosines of the shifted features with the prototypes, (n, n_classes).

        The rows pass through one small buffer: there is no second X, and as products are rounded
        by how their factors lie in memory, features that are equal get scores that are equal.
        """
        check_is_fitted(self, "prototypes_")
        dtype = np.result_type(self.prototypes_, X)
        prototypes = torch.tensor(self.prototypes_.astype(dtype))[None]
        shift = torch.tensor(self.shift_.astype(dtype))[None]
        scores = prototypes.new_empty(len(X), len(self.classes_))
        buffer = prototypes.new_empty(min(len(X), _BLOCK_ROWS), X.shape[1])
        for start in range(0, len(X), _BLOCK_ROWS):
            rows = X[start : start + _BLOCK_ROWS]
            block = buffer[: len(rows)]
            np.copyto(block.numpy(), rows)
            cosines = UnitRows.of(block[None]).shifted_cosines(shift, prototypes)[1]
            scores[start : start + len(rows)] = cosines[0]
        return scores


class BDCSPN(CSPN):
    """Bias-diminished CSPN: prototypes rectified by the unlabelled features, eq. (5) to (8).

    Fitted without X_unlabeled it has nothing to shift or to rectify by, and is a `CSPN`. In a
    pipeline, X_unlabeled passes the earlier steps only if named in its `transform_input`.

    Parameters
    ----------
    z, epsilon, weighting, shift, rank, assignment, scale
        As in `protorect.core.functional.Options`; scale is also that of `predict_proba`.
    rectify
        False leaves the basic prototypes as they are, like z = 0.

    Attributes
    ----------
    classes_, prototypes_, shift_, transduction_
        As in `CSPN`, with the rectified prototypes and the shift xi of eq. (8).
    """

    def __init__(
        self,
        z: int | None = 8,
        epsilon: float = 10.0,
        weighting: Weighting = "samples",
        shift: bool = True,
        rectify: bool = True,
        rank: Rank = "cosine",
        assignment: Assignment = "predicted",
        scale: float = 10.0,
    ) -> None:
        self.z = z
        self.epsilon = epsilon
        self.weighting = weighting
        self.shift = shift
        self.rectify = rectify
        self.rank = rank
        self.assignment = assignment
        self.scale = scale

    def _options(self) -> Options:
        chosen = self.get_params()
        rectify = chosen.pop("rectify")
        if rectify not in (True, False):
            raise OptionError(f"rectify is {rectify!r}; it must be True or False.")
        options = Options(**chosen)
        return options if rectify else replace(options, z=0)


def _array(X: Any) -> Any:
    """X as scikit-learn takes it: tensors become arrays, and halves become float32."""
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()  # numpy has no bfloat16
    return X.astype(np.float32) if getattr(X, "dtype", None) == np.float16 else X
