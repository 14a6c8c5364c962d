"""Read benchmarks that are distributed as pickles, without executing anything in them.

An unpickler calls `find_class` for everything that is not a plain Python value. The one here
refuses all names but those under which numpy pickles its arrays, and for these it returns
replacements that can only create an array of numbers.
"""

import pickle
import pickletools
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from protorect._utils.files import open_file
from protorect._utils.text import on_one_line
from protorect.errors import DataError
from protorect.images.stored import StoredPicture

_NUMERIC = re.compile(r"[|<>=]?[biuf?][0-9]*")


def load_pickled_dict(path: Path) -> dict[str, Any]:
    """Read a pickled dict, its keys as text."""
    document = load_plain_pickle(path)
    if not isinstance(document, dict):
        raise DataError(f"{path} should hold a dict; it holds a {type(document).__name__}.")
    return {as_text(key, path): value for key, value in document.items()}


def as_text(value: Any, path: Path) -> str:
    """Convert text in the file that Python 2 may have pickled as bytes."""
    if not isinstance(value, str | bytes):
        raise DataError(f"{path} should name things by text, not by a {type(value).__name__}.")
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def store_raw(pixels: NDArray[np.uint8], name: str, scratch: Path) -> list[StoredPicture]:
    """Write pixels (n, height, width, 3) to a file, so that the array can be freed."""
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".raw", delete=False) as file:
        for row in pixels:
            file.write(row.tobytes())
    shape = pixels.shape[1:]
    length = int(np.prod(shape))
    return [
        StoredPicture(f"{name}/{row}", file.name, length, row * length, shape=shape)
        for row in range(len(pixels))
    ]


def load_plain_pickle(path: Path) -> Any:
    """Read a pickle of dicts, lists, text, bytes, numbers and arrays of numbers.

    Text in pickles of Python 2 is returned as bytes.
    """
    with open_file(path) as file:
        try:
            _check_lengths(file)
            file.seek(0)
            return _with_arrays(_PlainUnpickler(file, encoding="bytes").load(), {})
        except DataError as error:
            raise DataError(f"{path} {error}") from None
        except OSError:
            raise
        except Exception as error:  # a damaged pickle raises anything at all
            reason = on_one_line(error)
            raise DataError(f"{path} is not a whole pickle of plain arrays: {reason}.") from error


def _check_lengths(file: BinaryIO) -> None:
    """Check that the file is as long as its lengths and memo indices say, before unpickling it.

    A few forged bytes could otherwise make Python allocate gigabytes.
    """
    for count, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) <= count:
            raise pickle.UnpicklingError("it has a memo index out of range")


class _DType:
    """Replaces numpy.dtype, whose own state could be forged to corrupt memory."""

    __slots__ = ("dtype",)

    def __init__(self, name: Any, *_: Any) -> None:
        text = name.decode("ascii") if isinstance(name, bytes) else name
        if not isinstance(text, str) or not _NUMERIC.fullmatch(text):
            raise pickle.UnpicklingError("it holds an array of something other than numbers")
        self.dtype = np.dtype(text)

    def __setstate__(self, state: Any) -> None:
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order == ">":
            self.dtype = self.dtype.newbyteorder(">")


class _Array:
    """Replaces an array while the pickle is read."""

    __slots__ = ("array",)

    def __init__(self, data: Any, dtype: Any, shape: Any, order: Any) -> None:
        valid_shape = isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)
        if not valid_shape or order not in ("C", "F") or not isinstance(dtype, _DType):
            raise pickle.UnpicklingError("it makes an array in an unknown way")
        if not isinstance(data, bytes | bytearray):
            raise pickle.UnpicklingError("it holds an array whose values are not bytes")
        # frombuffer creates as many numbers as there are bytes for, whatever the shape claims.
        self.array = np.frombuffer(bytes(data), dtype.dtype).reshape(shape, order=order)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        self.array = _Array(data, dtype, shape, "F" if fortran else "C").array


class _Replacement:
    """Replaces a function that a pickle may name; its state cannot be changed by the pickle."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> NoReturn:
        raise pickle.UnpicklingError("it tries to change the unpickler")


def _refuse(*_: Any) -> NoReturn:
    raise pickle.UnpicklingError("it makes an array or a set in an unknown way")


def _empty_array(array_type: Any, *_: Any) -> _Array:
    if array_type is not _NDARRAY:
        raise pickle.UnpicklingError("it holds another kind of array")
    return _Array(b"", _DType("u1"), (0,), "C")


def _latin1(text: Any, encoding: Any) -> bytes:
    # How Python 3 writes bytes in protocol 2: as text to be encoded.
    if encoding not in ("latin1", b"latin1") or not isinstance(text, str):
        raise pickle.UnpicklingError("it encodes text in an unknown way")
    return text.encode("latin1")


def _with_arrays(value: Any, converted: dict[int, Any]) -> Any:
    """Return the value with arrays in place of their replacements.

    What is `converted`, by its id, is not converted again: a few bytes of nested pairs of the same
    list stand for exponentially many lists.
    """
    if id(value) in converted:
        return converted[id(value)]
    result = value
    if isinstance(value, _Array):
        result = value.array
    elif isinstance(value, dict):
        result = {key: _with_arrays(one, converted) for key, one in value.items()}
    elif isinstance(value, list | tuple):
        result = type(value)(_with_arrays(one, converted) for one in value)
    elif isinstance(value, _Replacement | _DType):
        raise pickle.UnpicklingError("it holds something that is not a value")
    converted[id(value)] = result
    return result


_NDARRAY = _Replacement(_refuse)
_ALLOWED = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _Replacement(_DType),
    ("_codecs", "encode"): _Replacement(_latin1),
} | {
    (f"numpy.{core}.{module}", name): _Replacement(function)
    for core in ("core", "_core")
    for module, name, function in (
        ("multiarray", "_reconstruct", _empty_array),
        ("numeric", "_frombuffer", _Array),
    )
}


def _load_with_plain_keys(opcode: bytes, keys: slice) -> Callable[[Any], None]:
    """What the opcode does, after a check of the keys, which are these values on the stack."""
    load = pickle._Unpickler.dispatch[opcode[0]]

    def load_checked(unpickler: Any) -> None:
        for key in unpickler.stack[keys]:
            short = isinstance(key, int) and key.bit_length() <= 64
            if not short and not isinstance(key, str | bytes | float | None):
                raise pickle.UnpicklingError(
                    "it holds a dict whose keys are neither text nor numbers"
                )
        load(unpickler)

    return load_checked


class _PlainUnpickler(pickle._Unpickler):
    """The unpickler that is written in Python, with neither sets nor tuples as keys of dicts.

    Python computes the hash of a tuple from its parts each time. A few bytes of nested pairs of the
    same tuple would take exponentially long.
    """

    dispatch: ClassVar = {
        **pickle._Unpickler.dispatch,
        pickle.SETITEM[0]: _load_with_plain_keys(pickle.SETITEM, slice(-2, -1)),
        pickle.SETITEMS[0]: _load_with_plain_keys(pickle.SETITEMS, slice(None, None, 2)),
        pickle.DICT[0]: _load_with_plain_keys(pickle.DICT, slice(None, None, 2)),
        pickle.ADDITEMS[0]: _refuse,
        pickle.FROZENSET[0]: _refuse,
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise DataError(
                f"asks for {module}.{name}, which is never run; only plain values and arrays of "
                "numbers are read. Get the file again from its source."
            ) from None
