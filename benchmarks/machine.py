"""What the machine allows: copy bandwidth, matrix-product rate, and the memory a call needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch

COPIED = 64 * 2**20  # float32 numbers: more than the caches hold
MATRIX = 2048


@dataclass(frozen=True)
class Machine:
    """Rates of this machine at this moment.

    Parameters
    ----------
    copy
        Bytes copied from memory to memory in a second. A gather of so many bytes is such a copy.
    product
        Floating-point operations in a second of a float32 matrix product.
    """

    copy: float
    product: float

    def least_seconds(self, bytes_gathered: float, operations: float) -> float:
        """The slower of moving the bytes and doing the arithmetic."""
        return max(bytes_gathered / self.copy, operations / self.product)


def measure_machine() -> Machine:
    """Rates on all cores, the best of a few tries."""
    source = torch.ones(COPIED)
    target = torch.empty_like(source)
    matrix = torch.randn(MATRIX, MATRIX)
    copy = 4 * COPIED / best_seconds(lambda: target.copy_(source))
    product = 2 * MATRIX**3 / best_seconds(lambda: torch.mm(matrix, matrix))
    return Machine(copy, product)


def best_seconds(work: Callable[[], object], tries: int = 5) -> float:
    """Shortest of a few tries, after one that does not count."""
    work()
    return min(seconds(work) for _ in range(tries))


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_new_process(work: Callable[..., int], *arguments: object) -> int:
    """The answer of a call in a process of its own, whose memory nothing has touched before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def extra_bytes(work: Callable[[], object]) -> int:
    """How far the resident memory of this process rises above what it was before the call."""
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    work()
    return max(0, _status("VmHWM") - before)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(name))
    return int(line.split()[1]) * 1024
