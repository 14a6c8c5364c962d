"""Old benchmark files are pickles. They are read without executing anything in them.

An unpickler asks `find_class` for everything that is not a plain Python value. Here it gets, for
the names under which numpy has pickled its arrays, stand-ins that can only make an array of
numbers; for any other name it gets a refusal.
"""

from __future__ import annotations

import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from protorect.errors import DataError

_NUMBERS = re.compile(r"[|<>=]?[biuf?][0-9]*")


def load_plain_pickle(path: Path) -> Any:
    """Read a pickle of dicts, lists, text, bytes, numbers and arrays of numbers.

    Text in pickles of Python 2 comes as bytes.
    """
    try:
        with path.open("rb") as file:
            _check_lengths(file)
            file.seek(0)
            return _plain(_PlainUnpickler(file, encoding="bytes").load())
    except DataError as error:
        raise DataError(f"{path} {error}") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # a damaged pickle raises anything at all
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path} is not a whole pickle of plain arrays: {reason}.") from error


def _check_lengths(file: BinaryIO) -> None:
    """Read the pickle through without making anything: all it announces must be in the file.

    A few forged bytes could otherwise make Python set aside gigabytes.
    """
    for steps, (step, argument, _) in enumerate(pickletools.genops(file)):
        if step.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) <= steps:
            raise pickle.UnpicklingError("it numbers its parts in an unknown way")


class _NumberType:
    """Stands in for numpy.dtype, whose own state could be forged to corrupt memory."""

    __slots__ = ("dtype",)

    def __init__(self, name: Any, *_: Any) -> None:
        text = name.decode("ascii") if isinstance(name, bytes) else name
        if not isinstance(text, str) or not _NUMBERS.fullmatch(text):
            raise pickle.UnpicklingError(f"it holds an array of {text!r}, not of numbers")
        self.dtype = np.dtype(text)

    def __setstate__(self, state: Any) -> None:
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order == ">":
            self.dtype = self.dtype.newbyteorder(">")


class _Array:
    """Stands in for an array, which is made from its bytes when all is read."""

    __slots__ = ("_data", "_dtype", "_order", "_shape")

    def __init__(self) -> None:
        self._data, self._dtype, self._shape, self._order = b"", np.dtype(np.uint8), (0,), "C"

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, data = state
        self.set(data, kind, shape, "F" if fortran else "C")

    def set(self, data: Any, kind: Any, shape: Any, order: Any) -> None:
        whole = isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)
        if not whole or order not in ("C", "F") or not isinstance(kind, _NumberType):
            raise pickle.UnpicklingError("it makes an array in an unknown way")
        if not isinstance(data, bytes | bytearray):
            raise pickle.UnpicklingError("it holds an array whose values are not bytes")
        self._data, self._dtype, self._shape = bytes(data), kind.dtype, shape
        self._order = order

    def made(self) -> NDArray[Any]:
        flat = np.frombuffer(self._data, self._dtype)  # as many numbers as there are bytes for
        return flat.reshape(self._shape, order="F" if self._order == "F" else "C")


class _StandIn:
    """A function a pickle may mention; what it makes is decided here, not in the pickle."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setstate__(self, state: Any) -> NoReturn:
        raise pickle.UnpicklingError("it would change what reads it")


def _refuse(*_: Any) -> NoReturn:
    raise pickle.UnpicklingError("it makes an array in an unknown way")


def _empty_array(kind: Any, *_: Any) -> _Array:
    if kind is not _ARRAY:
        raise pickle.UnpicklingError("it holds another kind of array")
    return _Array()


def _array_from_buffer(data: Any, kind: Any, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.set(data, kind, shape, order)
    return array


def _latin1(text: Any, encoding: Any) -> bytes:
    # Python 3 writes bytes so in protocol 2.
    if encoding not in ("latin1", b"latin1") or not isinstance(text, str):
        raise pickle.UnpicklingError("it encodes text in an unknown way")
    return text.encode("latin1")


def _plain(value: Any) -> Any:
    """The value with arrays in the place of their stand-ins."""
    if isinstance(value, _Array):
        return value.made()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(one) for one in value)
    if isinstance(value, _StandIn | _NumberType):
        raise pickle.UnpicklingError("it holds something that is not a value")
    return value


_ARRAY = _StandIn(_refuse)
_ALLOWED = {
    ("numpy", "ndarray"): _ARRAY,
    ("numpy", "dtype"): _StandIn(_NumberType),
    ("_codecs", "encode"): _StandIn(_latin1),
} | {
    (f"numpy.{core}.{module}", name): _StandIn(make)
    for core in ("core", "_core")
    for module, name, make in (
        ("multiarray", "_reconstruct", _empty_array),
        ("numeric", "_frombuffer", _array_from_buffer),
    )
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise DataError(
                f"asks for {module}.{name}, which is never run; only plain values and arrays of "
                "numbers are read. Get the file again from its source."
            ) from None
