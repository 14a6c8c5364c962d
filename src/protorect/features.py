"""Features of pictures with their labels, as arrays or from a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from protorect.arrays import load_arrays, save_arrays
from protorect.errors import DataError
from protorect.unitrows import inverse, row_norms


@dataclass(frozen=True)
class FeatureTable:
    """Feature rows on a device, with what makes each a unit row.

    Parameters
    ----------
    rows
        (n, dim), floating point of any width.
    scale
        (n,), one over the length of each row; 0 for a zero row.
    labels
        (n,), the class of every row: numbers or strings.
    """

    rows: Tensor
    scale: Tensor
    labels: NDArray[Any]

    @classmethod
    def of(
        cls,
        features: ArrayLike | Tensor,
        labels: ArrayLike | Tensor,
        device: str | torch.device | None = None,
    ) -> FeatureTable:
        """Check features (n, dim) and labels (n,) and bring them to the device."""
        rows = _as_tensor(features).to(device)
        names = np.asarray(labels.cpu() if isinstance(labels, Tensor) else labels)
        if rows.ndim != 2 or 0 in rows.shape:
            raise DataError(f"features must be (n, dim), got shape {tuple(rows.shape)}.")
        if names.ndim != 1 or len(names) != len(rows):
            raise DataError(
                f"features and labels must have the same length, got {len(rows)} rows of features "
                f"and labels of shape {names.shape}."
            )
        if names.dtype.hasobject:
            names = names.astype(str)
        if (names == names[0]).all():
            raise DataError(f"all labels are {names[0]}; at least two classes are needed.")
        norms = row_norms(rows)
        _check_finite(rows, norms)
        return cls(rows, inverse(norms), names)


def load_features(
    path: str | os.PathLike[str],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Features (n, dim), labels (n,) and class names, or None, of a .npz feature file."""
    arrays = load_arrays(path, required=("features", "labels"), optional=("class_names",))
    features = arrays["features"]
    if features.dtype.kind not in "fiu":
        raise DataError(f"{Path(path)}: features must be numbers, they are {features.dtype}.")
    return features, arrays["labels"], arrays.get("class_names")


def save_features(
    path: str | os.PathLike[str],
    features: NDArray[Any],
    labels: NDArray[Any],
    class_names: NDArray[Any] | None = None,
) -> None:
    """Write a .npz feature file."""
    named = {} if class_names is None else {"class_names": class_names}
    save_arrays(path, features=features, labels=labels, **named)


def _as_tensor(features: ArrayLike | Tensor) -> Tensor:
    if isinstance(features, Tensor):
        tensor = features.detach()
    else:
        array = np.asarray(features)
        if array.dtype.kind not in "fiub":
            raise DataError(f"features must be numbers, they are {array.dtype}.")
        if not (array.flags.writeable and array.flags.aligned and array.dtype.isnative):
            array = array.astype(array.dtype.newbyteorder("="))
        tensor = torch.from_numpy(array)
    return tensor if tensor.is_floating_point() else tensor.float()


def _check_finite(rows: Tensor, norms: Tensor) -> None:
    """Norms are finite just where a row is, so only the suspicious rows are looked at."""
    suspects = torch.isfinite(norms).logical_not().nonzero().flatten()
    broken = suspects[~torch.isfinite(rows[suspects]).all(dim=1)].tolist()
    if broken:
        shown = ", ".join(map(str, broken[:5])) + (", ..." if len(broken) > 5 else "")
        raise DataError(
            f"{len(broken)} of {len(rows)} feature rows hold NaN or infinite values: row "
            f"{shown}. Remove or repair them."
        )
    if len(suspects):
        raise DataError(f"feature row {int(suspects[0])} is too long to be normalised.")
