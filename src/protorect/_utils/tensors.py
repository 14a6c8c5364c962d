"""numpy arrays as tensors without a copy where torch can, and tensors on devices."""

import warnings
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from protorect.errors import DataError, OptionError


def tensor_of(array: NDArray[Any]) -> Tensor:
    """The same memory as a tensor, read-only and mapped arrays included; not to be written to."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if min(array.strides, default=0) < 0:
        array = array.copy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


def check_has_values(name: str, tensor: Tensor) -> None:
    """Raise DataError if a tensor has no values (meta) or is sparse."""
    if tensor.is_meta or tensor.layout != torch.strided:
        kind = "a meta tensor" if tensor.is_meta else f"sparse ({tensor.layout})"
        raise DataError(f"{name} is {kind}; give a dense tensor of numbers, as on the device cpu.")


def on_device(tensor: Tensor, device: str | torch.device | None) -> Tensor:
    """The tensor on a device; OptionError if that device cannot be used."""
    try:
        moved = tensor.to(device)
        if moved.is_meta:
            raise RuntimeError("it holds no values")
        return moved
    except (RuntimeError, AssertionError) as error:  # which one depends on the device
        reason = str(error).splitlines()[0].rstrip(".")
        raise OptionError(f"device {str(device)!r} cannot be used: {reason}. Try cpu.") from error


def usable_device(device: str | torch.device) -> torch.device:
    """The device, or with "auto" the best one there is; OptionError if it cannot be used."""
    return on_device(torch.empty(0), _best_device() if device == "auto" else device).device


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
