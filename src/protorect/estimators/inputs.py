"""Features and labels as scikit-learn takes them."""

import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from protorect._utils.tensors import check_has_values
from protorect.errors import DataError

Array = NDArray[Any]


def to_array(X: Any) -> Any:
    """X as scikit-learn takes it: tensors become arrays, float16 becomes float32."""
    if isinstance(X, Tensor):
        check_has_values("X", X)
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()  # numpy has no bfloat16
    return X.astype(np.float32) if getattr(X, "dtype", None) == np.float16 else X


def as_labels(y: Any) -> Any:
    """y as scikit-learn takes it; a list of mixed or other types becomes an array of objects."""
    if isinstance(y, Tensor):
        check_has_values("y", y)
        return y.detach().cpu().numpy()
    if not isinstance(y, list | tuple):
        return y
    labels = [label.item() if isinstance(label, Tensor) else label for label in y]
    return labels if _sortable(labels) else objects(labels)


def encode(y: Array) -> tuple[Array, Tensor]:
    """The classes, and the class number of each label."""
    if y.dtype == object:
        try:
            distinct = dict.fromkeys(y)
        except TypeError as error:
            raise DataError(f"a label in y is not hashable: {error}.") from error
        classes = objects(sorted(distinct) if _sortable(distinct) else distinct)
        position = {label: code for code, label in enumerate(classes)}
        codes = np.array([position[label] for label in y])
    else:
        with warnings.catch_warnings():  # as many classes as samples are usual here
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
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


def objects(labels: Iterable[Any]) -> Array:
    """Labels as an array of objects (n,)."""
    return np.fromiter(labels, dtype=object)
