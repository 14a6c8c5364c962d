"""numpy arrays as tensors, without a copy wherever torch can do without."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def tensor_of(array: NDArray[Any]) -> Tensor:
    """The same memory as a tensor, read-only and mapped arrays included; not to be written to."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if min(array.strides, default=0) < 0:
        array = array.copy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)
