"""Labels and groups of rows as plain arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from protorect._utils.tensors import check_has_values
from protorect.errors import DataError


def plain_labels(values: Any, name: str = "labels") -> NDArray[Any]:
    """The labels as an array of numbers or of strings; `name` is what errors call them."""
    if isinstance(values, Tensor):
        check_has_values(name, values)
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"{name} must be (n,), one per row, not nested lists.") from error
    # numpy turns a list of numbers and strings into strings without notice.
    if array.dtype == object or (array.dtype.kind in "SU" and not isinstance(values, np.ndarray)):
        objects = np.asarray(values, dtype=object).ravel()
        if all(isinstance(value, str) for value in objects):
            return array.astype(str)
        types = sorted({type(value).__name__ for value in objects})
        if len(types) > 1:
            raise DataError(
                f"{name} must be numbers or strings, not both: they are {', '.join(types)}."
            )
    if array.dtype.kind not in "biufSU":
        raise DataError(f"{name} must be numbers or strings, they are {array.dtype}.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise DataError(f"a {name.removesuffix('s')} is NaN; give every row one.")
    return array


def plain_groups(values: Any, n: int) -> NDArray[Any]:
    """The groups of `n` rows as an array (n,) of numbers or of strings."""
    array = plain_labels(values, "groups")
    if array.shape != (n,):
        raise DataError(f"groups must be (n,), one per row: {n} rows, shape {array.shape}.")
    return array
