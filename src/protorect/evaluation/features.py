"""Features with their labels: as a table on a device, in a file, in a store."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from protorect._utils.arrays import load_arrays, save_arrays
from protorect._utils.tensors import on_device, tensor_of
from protorect.core.unit_rows import inverse, row_norms
from protorect.embedding.store import FeatureStore
from protorect.errors import DataError


@dataclass(frozen=True)
class FeatureTable:
    """Features on a device, with their labels."""

    rows: Tensor  # (n, dim)
    scale: Tensor  # (n,), one over the norm of each row; 0 for a zero row
    labels: NDArray[Any]  # (n,), numbers or strings

    @classmethod
    def of(
        cls,
        features: ArrayLike | Tensor,
        labels: ArrayLike | Tensor,
        device: str | torch.device | None = None,
    ) -> Self:
        """Check features (n, dim) and labels (n,), and move the features to the device."""
        rows = on_device(_as_tensor(features), device)
        names = plain_labels(labels)
        if rows.ndim != 2 or 0 in rows.shape:
            raise DataError(f"features must be (n, dim), got shape {tuple(rows.shape)}.")
        if names.ndim != 1 or len(names) != len(rows):
            raise DataError(
                f"features and labels must have the same length, got {len(rows)} rows of features "
                f"and labels of shape {names.shape}."
            )
        if (names == names[0]).all():
            raise DataError(f"all labels are {names[0]}; at least two classes are needed.")
        norms = row_norms(rows)
        _check_finite(rows, norms)
        return cls(rows, inverse(norms), names)


def plain_labels(labels: ArrayLike | Tensor) -> NDArray[Any]:
    """Labels as an array of numbers or of strings; objects that are strings are converted."""
    names = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if names.dtype == object and all(isinstance(name, str) for name in names.flat):
        names = names.astype(str)
    if names.dtype.kind not in "biufSU":
        raise DataError(f"labels must be numbers or strings, they are {names.dtype}.")
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise DataError("a label is NaN; give every row a class.")
    return names


def load_features(path: str | os.PathLike[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Features (n, dim) and labels (n,) of a .npz file or a feature store.

    Labels are class names if the file has them. The features of a store are memory-mapped.

    Examples
    --------
    >>> import os, tempfile, protorect
    >>> path = os.path.join(tempfile.mkdtemp(), "features.npz")
    >>> protorect.save_features(path, [[1.0, 0.0], [0.0, 1.0]], [0, 1], ["cat", "dog"])
    >>> features, labels = protorect.load_features(path)
    >>> features.shape, labels.tolist()
    ((2, 2), ['cat', 'dog'])
    """
    path = Path(path)
    if path.is_dir():
        store = FeatureStore.open(path)
        return store.features, _with_names(path, store.labels, np.array(store.class_names))
    arrays = load_arrays(path, required=("features", "labels"), optional=("class_names",))
    return arrays["features"], _with_names(path, arrays["labels"], arrays.get("class_names"))


def _with_names(path: Path, labels: NDArray[Any], names: NDArray[Any] | None) -> NDArray[Any]:
    """Class names instead of class numbers, if there are names and all are different."""
    if names is None or labels.dtype.kind not in "iu" or labels.size == 0:
        return labels
    if names.ndim != 1:
        raise DataError(f"{path}: class_names must be a list, it has shape {names.shape}.")
    if labels.min() < 0 or labels.max() >= len(names):
        raise DataError(
            f"{path}: {len(names)} class_names for labels {labels.min()} .. {labels.max()}; "
            "labels must be positions in class_names."
        )
    distinct = len(np.unique(names)) == len(names)  # a common name would merge two classes
    return names[labels] if distinct else labels


def save_features(
    path: str | os.PathLike[str],
    features: ArrayLike,
    labels: ArrayLike,
    class_names: ArrayLike | None = None,
) -> None:
    """Write a .npz file of features (n, dim) and labels (n,), positions in class_names.

    Examples
    --------
    >>> import os, tempfile, protorect
    >>> path = os.path.join(tempfile.mkdtemp(), "features.npz")
    >>> protorect.save_features(path, [[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> protorect.load_features(path)[1].tolist()
    ['cat', 'dog']
    """
    named = {} if class_names is None else {"class_names": plain_labels(class_names)}
    save_arrays(path, features=np.asarray(features), labels=plain_labels(labels), **named)


def _as_tensor(features: ArrayLike | Tensor) -> Tensor:
    if isinstance(features, Tensor):
        tensor = features.detach()
        if tensor.is_complex() or tensor.layout != torch.strided:
            raise DataError("features must be a dense tensor of real numbers.")
    else:
        if np.ma.isMaskedArray(features):
            raise DataError("features are a masked array; fill or remove the masked values first.")
        array = np.asarray(features)
        if array.dtype.kind not in "fiub":
            raise DataError(f"features must be numbers, they are {array.dtype}.")
        if array.dtype.itemsize > 8:  # wider than torch knows
            array = array.astype(np.float64)
        tensor = tensor_of(array)
    return tensor if tensor.is_floating_point() else tensor.float()


def _check_finite(rows: Tensor, norms: Tensor) -> None:
    """Raise DataError if a row is not finite; only rows with such a norm are searched."""
    suspects = torch.isfinite(norms).logical_not().nonzero().flatten()
    broken = suspects[~torch.isfinite(rows[suspects]).all(dim=1)].tolist()
    if broken:
        shown = ", ".join(map(str, broken[:5])) + (", ..." if len(broken) > 5 else "")
        raise DataError(
            f"{len(broken)} of {len(rows)} feature rows hold NaN or infinite values: row "
            f"{shown}. Remove or repair them."
        )
    if len(suspects):
        raise DataError(f"feature row {int(suspects[0])} has a norm too large to be normalized.")
