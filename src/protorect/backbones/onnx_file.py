"""ONNX files, written without the library: nodes and arrays as protocol buffers.

https://github.com/onnx/onnx/blob/main/onnx/onnx.proto has the numbers of the fields. Only what
`backbones/export.py` needs is here.
"""

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_IR_VERSION, _OPSET = 9, 17
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}  # TensorProto.DataType
_INT, _INTS = 2, 7  # AttributeProto.AttributeType


class Graph:
    """Nodes and constants in their order; values have names."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def node(self, kind: str, *inputs: str, **attributes: int | list[int]) -> str:
        """Add an operation, and return the name of its output."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(
            b"".join(
                (
                    *(_text(1, one) for one in inputs),
                    _text(2, name),
                    _text(4, kind),
                    *(_bytes(5, _attribute(key, value)) for key, value in attributes.items()),
                )
            )
        )
        return name

    def constant(self, values: Any, dtype: str = "float32") -> str:
        """Add an array or a number, and return its name."""
        name, array = f"c{len(self._constants)}", np.ascontiguousarray(values, dtype)
        shape = np.shape(values)  # `ascontiguousarray` makes an array of a number
        self._constants.append(_tensor(name, array.astype(array.dtype.newbyteorder("<")), shape))
        return name

    def model(self, inputs: tuple[str, str, list[int | str]], output: str, dim: int) -> bytes:
        """The file: `inputs` are name, type and shape of the input, `output` is (n, dim) floats."""
        graph = b"".join(
            (
                *(_bytes(1, one) for one in self._nodes),
                _text(2, "network"),
                *(_bytes(5, one) for one in self._constants),
                _bytes(11, _value(*inputs)),
                _bytes(12, _value(output, "float32", ["n", dim])),
            )
        )
        opset = _text(1, "") + _number(2, _OPSET)
        return _number(1, _IR_VERSION) + _text(2, "protorect") + _bytes(7, graph) + _bytes(8, opset)


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _INT)
    return _text(1, name) + _numbers(8, value) + _number(20, _INTS)


def _tensor(name: str, array: NDArray[Any], shape: Iterable[int]) -> bytes:
    kind = _TYPES[array.dtype.name]
    return _numbers(1, shape) + _number(2, kind) + _text(8, name) + _bytes(9, array.tobytes())


def _value(name: str, dtype: str, shape: list[int | str]) -> bytes:
    sides = (_number(1, one) if isinstance(one, int) else _text(2, one) for one in shape)
    dimensions = b"".join(_bytes(1, side) for side in sides)
    tensor = _number(1, _TYPES[dtype]) + _bytes(2, dimensions)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _numbers(field: int, values: Iterable[int]) -> bytes:
    return b"".join(_number(field, value) for value in values)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Seven bits per byte, the lowest first; all but the last have the highest bit set."""
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return struct.pack(f"{len(parts) + 1}B", *parts, value)
