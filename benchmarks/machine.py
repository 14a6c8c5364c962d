"""What the machine allows, how two speeds compare, and the memory a call needs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

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


def measure_machine(copied: int = COPIED, side: int = MATRIX) -> Machine:
    """Rates on all cores, the best of a few tries."""
    import torch  # not where only the memory of processes is looked at

    source = torch.ones(copied)
    target = torch.empty_like(source)
    matrix = torch.randn(side, side)
    copy = 4 * copied / best_seconds(lambda: target.copy_(source))
    product = 2 * side**3 / best_seconds(lambda: torch.mm(matrix, matrix))
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


def compare(ours: Callable[[], float], bare: Callable[[], float], rounds: int) -> dict[str, float]:
    """Medians of two rates, measured in turn, and of the one as a fraction of the other."""
    ours(), bare()  # what is done only once does not count
    pairs = [(ours(), bare()) for _ in range(rounds)]
    return {
        "ours": median(rate for rate, _ in pairs),
        "bare": median(rate for _, rate in pairs),
        "fraction": median(rate / limit for rate, limit in pairs),
    }


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


def extra_bytes_of_all(work: Callable[[], object], every: float = 0.02) -> int:
    """How far the memory of this process and those it starts rises above what it was before.

    What several processes share counts once. It is looked at every few hundredths of a second.
    """
    before, seen, done = _shared_once(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(every):
            seen.append(_shared_once())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(0, max(seen) - before)


def _shared_once() -> int:
    """Bytes of this process and all below it; a page of n processes is an n-th for each."""
    return sum(_proportional(process) for process in _family(os.getpid()))


def _family(process: int) -> list[int]:
    try:
        tasks = Path(f"/proc/{process}/task").iterdir()
        children = [int(one) for task in tasks for one in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has ended since
        return []
    return [process, *(one for child in children for one in _family(child))]


def _proportional(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(name))
    return int(line.split()[1]) * 1024
