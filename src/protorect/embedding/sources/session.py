"""ONNX networks, computed by onnxruntime on the CPU."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from protorect.backbones.onnx_file import Graph

_BYTES = 64  # of the product that shows whether sums are exact


def open_session(model: bytes | Path) -> Any:
    """A session that computes in the calling thread: the cores work on different pictures."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # what is wrong is in the exceptions
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


@cache
def sums_bytes_exactly() -> bool:
    """Whether this processor has instructions for products of bytes: VNNI, AMX, ARM's dot product.

    Without them, x86 processors add two products in 16 bits, which overflow: an eight-bit network
    would give other features there, and gain little. Such an overflow is looked for.
    """
    graph = Graph()
    weights = graph.constant(np.full((_BYTES, 32), 127), "int8")
    product = graph.node("Cast", graph.node("MatMulInteger", "bytes", weights), to=1)
    session = open_session(graph.model(("bytes", "uint8", ["n", _BYTES]), product, 32))
    sums = session.run(None, {"bytes": np.full((2, _BYTES), 255, np.uint8)})[0]
    return bool((sums == _BYTES * 255 * 127).all())
