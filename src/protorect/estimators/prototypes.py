"""scikit-learn classifiers: the equations of `protorect.core.functional` on one task.

Both take numpy arrays, torch tensors and pandas frames, compute in the floating type of the
features (float16 in float32), and accept any hashable labels.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect._utils.parameters import check_flag
from protorect._utils.tensors import tensor_of
from protorect.core import functional
from protorect.core.functional import Assignment, Options, Rank, Weighting
from protorect.core.unit_rows import UnitRows
from protorect.errors import DataError

Array = NDArray[Any]
_BLOCK_ROWS = 4096
_LABEL_TYPE = re.compile(r"[<>|=]?[?biufOSU][0-9]{0,5}")  # of numpy, as in "<U12"


class CSPN(ClassifierMixin, BaseEstimator):
    """Cosine similarity prototypical network (CSPN): the nearest basic prototype, eq. (1), (3).

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
        (n_features,), added to a normalized feature before it is classified: zeros.
    transduction_
        (n_unlabeled,), the predicted labels of X_unlabeled; empty without it.

    Examples
    --------
    >>> import protorect
    >>> X, y = [[1.0, 0.1], [0.1, 1.0]], ["cat", "dog"]
    >>> protorect.CSPN().fit(X, y).predict([[0.9, 0.4], [0.2, 0.7]]).tolist()
    ['cat', 'dog']
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
            (n_support, n_features), the labeled features.
        y
            (n_support,), their labels: strings, whole numbers, or anything hashable in a list.
        X_unlabeled
            (n_unlabeled, n_features), the features to label, or None. Computations are in its
            floating type, as it is usually much larger than X. With few rows per class the shift
            of `BDCSPN` may lower the accuracy.
        """
        options = self._options()
        X, y = validate_data(self, _array(X), _as_labels(y), dtype=(np.float64, np.float32))
        classes, codes = _encode(y)
        support, ways = tensor_of(X)[None], len(classes)
        if X_unlabeled is None:
            unlabeled, shift = X[:0], None
            prototypes = functional.basic_prototypes(support, codes, ways)
        else:
            try:
                unlabeled = self._validated(X_unlabeled)
            except ValueError as error:
                raise DataError(f"X_unlabeled: {error}") from error
            query = tensor_of(unlabeled)[None]
            if support.dtype != query.dtype:  # the norm may be out of its range
                support = functional.normalize(support).to(query.dtype)
            prototypes, shift, _ = functional.rectify(support, codes, query, ways, options)
        self.classes_ = classes
        self.prototypes_ = prototypes[0].numpy()
        self.shift_ = np.zeros_like(self.prototypes_[0]) if shift is None else shift[0].numpy()
        # Not from the scores of `rectify`, which are rounded differently from those of `predict`.
        self.transduction_ = self._predicted(unlabeled)
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

        With two classes (n,), as in scikit-learn: the second cosine minus the first.
        """
        cosines = self._scores(self._validated(X)).numpy()
        return np.asarray(cosines[:, 1] - cosines[:, 0] if len(self.classes_) == 2 else cosines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file; `transduction_` is not saved.

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
        """Read a file that `save` wrote; predictions are equal to the last bit."""
        tensors, config = load_tensors(path, kind="estimator")
        name, expected = config.get("class"), cls.__name__
        if name != expected:
            raise DataError(f"{path} holds a {name}, not a {expected}; load it with {name}.load.")
        try:
            if not _LABEL_TYPE.fullmatch(str(config["classes_dtype"])):
                raise ValueError("its labels are of an unknown type")
            self = cls(**config["params"])
            self.classes_ = _objects(config["classes"]).astype(config["classes_dtype"])
            self.prototypes_, self.shift_ = tensors["prototypes"].numpy(), tensors["shift"].numpy()
            self.n_features_in_ = len(self.shift_)
            if config["feature_names"]:
                self.feature_names_in_ = _objects(config["feature_names"])
            shape, needed = self.prototypes_.shape, (len(self.classes_), self.n_features_in_)
            if shape != needed:
                raise ValueError(f"prototypes of shape {shape} instead of {needed}")
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{path} holds a damaged {name}: {error}. Save it again.") from error
        return self

    def _validated(self, X: Any) -> Array:
        X = validate_data(self, _array(X), reset=False, dtype=(np.float64, np.float32))
        return np.asarray(X)

    def _predicted(self, X: Array) -> Array:
        codes = functional.predictions(self._scores(X))  # checks that there are classes
        return np.asarray(self.classes_[codes.numpy()])

    def _scores(self, X: Array) -> Tensor:
        """Cosines of the shifted features with the prototypes, (n, n_classes).

        The rows are copied to a small buffer, not all at once. Products are rounded depending on
        memory layout, so this also gives equal features equal scores.
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
    """Bias-diminished CSPN: prototypes rectified by the unlabeled features, eq. (5) to (8).

    Without X_unlabeled there is nothing to rectify by, and it is a `CSPN`. In a pipeline, the
    earlier steps transform X_unlabeled only if it is named in `transform_input`.

    Parameters
    ----------
    z, epsilon, weighting, shift, rank, assignment, scale
        As in `protorect.core.functional.Options`; scale is also that of `predict_proba`.
    rectify
        False for the basic prototypes, like z = 0.

    Attributes
    ----------
    classes_, prototypes_, shift_, transduction_
        As in `CSPN`, with the rectified prototypes and the shift xi of eq. (8).

    Examples
    --------
    >>> import protorect
    >>> X, y = [[1.0, 0.1], [0.1, 1.0]], ["cat", "dog"]
    >>> X_unlabeled = [[0.9, 0.4], [0.8, 0.2], [0.3, 0.8], [0.2, 0.7]]
    >>> protorect.BDCSPN(z=2).fit(X, y, X_unlabeled=X_unlabeled).transduction_.tolist()
    ['cat', 'cat', 'dog', 'dog']
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
        check_flag("rectify", rectify)
        options = Options(**chosen)
        return options if rectify else replace(options, z=0)


def _array(X: Any) -> Any:
    """X as scikit-learn takes it: tensors become arrays, float16 becomes float32."""
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()  # numpy has no bfloat16
    return X.astype(np.float32) if getattr(X, "dtype", None) == np.float16 else X


def _as_labels(y: Any) -> Any:
    """y as scikit-learn takes it; a list of mixed or other types becomes an array of objects."""
    if isinstance(y, Tensor):
        return y.detach().cpu().numpy()
    if not isinstance(y, list | tuple):
        return y
    labels = [label.item() if isinstance(label, Tensor) else label for label in y]
    return labels if _sortable(labels) else _objects(labels)


def _encode(y: Array) -> tuple[Array, Tensor]:
    """The classes, and the class number of each label."""
    if y.dtype == object:
        try:
            distinct = dict.fromkeys(y)
        except TypeError as error:
            raise DataError(f"a label in y is not hashable: {error}.") from error
        classes = _objects(sorted(distinct) if _sortable(distinct) else distinct)
        position = {label: code for code, label in enumerate(classes)}
        codes = np.array([position[label] for label in y])
    else:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"y has one class only, {classes.tolist()[0]!r}; give at least two.")
    return classes, torch.from_numpy(codes)


def _sortable(labels: Iterable[Any]) -> bool:
    """Whether they are all strings, all booleans or all numbers."""
    kinds = {
        (isinstance(x, str), isinstance(x, bool | np.bool_), isinstance(x, Real)) for x in labels
    }
    return len(kinds) == 1 and any(kinds.pop())


def _objects(labels: Iterable[Any]) -> Array:
    """Labels as an array of objects (n,)."""
    return np.fromiter(labels, dtype=object)
