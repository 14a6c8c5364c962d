"""Features with their labels: as a table on a device, in a file, in a store."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from protorect._utils.arrays import load_arrays, save_arrays
from protorect._utils.tensors import check_has_values, on_device, tensor_of, usable_device
from protorect.core.unit_rows import inverse, row_norms
from protorect.embedding.store import FeatureStore
from protorect.errors import DataError, OptionError, naming
from protorect.evaluation.labels import plain_groups, plain_labels


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features on a device, with their labels and groups.

    Examples
    --------
    >>> import os, tempfile, protorect
    >>> path = os.path.join(tempfile.mkdtemp(), "features.npz")
    >>> protorect.save_features(path, [[1, 0], [0, 1]], ["cat", "dog"], groups=["a.mp4", "b.mp4"])
    >>> protorect.FeatureTable.of(path).groups.tolist()
    ['a.mp4', 'b.mp4']
    """

    rows: Tensor  # (n, dim)
    scale: Tensor  # (n,), one over the norm of each row; 0 for a zero row
    labels: NDArray[Any]  # (n,), numbers or strings
    groups: NDArray[Any] | None = None  # (n,), numbers or strings
    path: Path | None = None  # of the file or the store they were read from

    @classmethod
    def of(
        cls,
        features: "FeatureSource",
        labels: ArrayLike | Tensor | None = None,
        device: str | torch.device | None = None,
        groups: ArrayLike | Tensor | None = None,
    ) -> "FeatureTable":
        """Check features (n, dim), labels (n,) and groups (n,), and move them to the device.

        `features` may be the path of a .npz file or a feature store, which has its own labels and
        groups, or a table already.
        """
        if device is not None:
            usable_device(device)
        if isinstance(features, str | os.PathLike | FeatureTable) and labels is not None:
            raise OptionError("labels are given, and the features have their own; leave them out.")
        if isinstance(features, FeatureTable):
            own = features.groups if groups is None else plain_groups(groups, len(features.rows))
            rows, scale = on_device(features.rows, device), on_device(features.scale, device)
            return replace(features, rows=rows, scale=scale, groups=own)
        if isinstance(features, str | os.PathLike):
            path = Path(features)
            stored, names, own = read_features(path)
            groups = own if groups is None else groups
            with naming(path):
                return replace(cls._checked(stored, names, device, groups), path=path)
        if labels is None:
            raise OptionError("labels are missing; only a feature file has its own.")
        return cls._checked(features, labels, device, groups)

    @classmethod
    def _checked(
        cls,
        features: ArrayLike | Tensor,
        labels: ArrayLike | Tensor,
        device: str | torch.device | None,
        groups: ArrayLike | Tensor | None,
    ) -> "FeatureTable":
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
        plain = None if groups is None else plain_groups(groups, len(rows))
        return cls(rows, inverse(norms), names, plain)


FeatureSource = ArrayLike | Tensor | str | os.PathLike[str] | FeatureTable


def feature_table(
    given: FeatureSource | tuple[Any, ...], device: str | torch.device | None = None
) -> FeatureTable:
    """The table of (features, labels), (features, labels, groups), a path or a table."""
    if not isinstance(given, tuple):
        return FeatureTable.of(given, device=device)
    if len(given) not in (2, 3):
        raise OptionError(
            f"give (features, labels) or (features, labels, groups), not a tuple of {len(given)}."
        )
    features, labels, *groups = given
    return FeatureTable.of(features, labels, device, *groups)


def load_features(path: str | os.PathLike[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Features (n, dim) and labels (n,) of a .npz file or a feature store.

    Labels are class names if the file has them. The features of a store are memory-mapped. For the
    groups, see `FeatureTable`.

    Examples
    --------
    >>> import os, tempfile, protorect
    >>> path = os.path.join(tempfile.mkdtemp(), "features.npz")
    >>> protorect.save_features(path, [[1.0, 0.0], [0.0, 1.0]], [0, 1], ["cat", "dog"])
    >>> features, labels = protorect.load_features(path)
    >>> features.shape, labels.tolist()
    ((2, 2), ['cat', 'dog'])
    """
    return read_features(Path(path))[:2]


def read_features(path: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Features (n, dim), labels (n,) and groups (n,), if any, of a .npz file or a feature store."""
    if path.is_dir():
        store = FeatureStore.open(path)
        labels = _with_names(path, store.labels, np.array(store.class_names))
        return store.features, labels, store.groups
    optional = ("class_names", "groups")
    arrays = load_arrays(path, required=("features", "labels"), optional=optional)
    labels = _with_names(path, arrays["labels"], arrays.get("class_names"))
    return arrays["features"], labels, arrays.get("groups")


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
    groups: ArrayLike | None = None,
) -> None:
    """Write a .npz file of features (n, dim) and labels (n,), positions in class_names.

    Groups (n,) keep near-duplicates together, such as the frames of one video: support and queries
    of an episode share no group.

    Examples
    --------
    >>> import os, tempfile, protorect
    >>> path = os.path.join(tempfile.mkdtemp(), "features.npz")
    >>> protorect.save_features(path, [[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> protorect.load_features(path)[1].tolist()
    ['cat', 'dog']
    """
    arrays = {"features": np.asarray(features), "labels": plain_labels(labels)}
    if class_names is not None:
        arrays["class_names"] = plain_labels(class_names, "class_names")
    if groups is not None:
        arrays["groups"] = plain_groups(groups, len(arrays["labels"]))
    save_arrays(path, **arrays)


def mean_feature(features: ArrayLike | Tensor | str | os.PathLike[str]) -> list[float]:
    """Mean (dim,) of features (n, dim), given as an array or as the path of a file or store."""
    if isinstance(features, str | os.PathLike):
        loaded = load_features(features)[0]
        with naming(features):
            return mean_feature(loaded)
    rows = _as_tensor(features)
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"base features must be (n, dim), got shape {tuple(rows.shape)}.")
    mean = rows.mean(dim=0, dtype=torch.float64)
    if not torch.isfinite(mean).all():
        _check_finite(rows, row_norms(rows))
    return list(mean.tolist())


def _as_tensor(features: ArrayLike | Tensor) -> Tensor:
    if isinstance(features, Tensor):
        check_has_values("features", features)
        tensor = features.detach()
        if tensor.is_complex():
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
