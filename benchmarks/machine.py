"""Rates of the machine, the comparison of two speeds, and the memory a call needs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import median

COPIED = 64 * 2**20  # float32 numbers: more than the caches hold
MATRIX = 2048


@dataclass(frozen=True)
class Machine:
    """Rates of this machine at this moment."""

    copy: float  # bytes per second from memory to memory, as when rows are gathered
    product: float  # floating-point operations per second of a float32 matrix product

    def least_seconds(self, bytes_gathered: float, operations: float) -> float:
        """The longer of the times to copy the bytes and to do the arithmetic."""
        return max(bytes_gathered / self.copy, operations / self.product)


def measure_machine(copied: int = COPIED, side: int = MATRIX) -> Machine:
    """Rates on all cores, the best of a few attempts."""
    import torch  # not needed where only the memory of processes is measured

    source = torch.ones(copied)
    target = torch.empty_like(source)
    matrix = torch.randn(side, side)
    copy = 4 * copied / best_seconds(lambda: target.copy_(source))
    product = 2 * side**3 / best_seconds(lambda: torch.mm(matrix, matrix))
    return Machine(copy, product)


def best_seconds(work: Callable[[], object], attempts: int = 5) -> float:
    """Shortest of a few attempts, after a first one that does not count."""
    work()
    return min(seconds(work) for _ in range(attempts))


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(
    library: Callable[[], float], bare: Callable[[], float], rounds: int
) -> dict[str, float]:
    """Medians of two rates, measured alternately, and of their ratio in each round."""
    library(), bare()  # a first call, which also loads and compiles, does not count
    pairs = [(library(), bare()) for _ in range(rounds)]
    return {
        "library": median(rate for rate, _ in pairs),
        "bare": median(rate for _, rate in pairs),
        "fraction": median(rate / limit for rate, limit in pairs),
    }


def rates_and_ratio(rates: dict[str, float]) -> list[str]:
    """Cells of a table: two rates, and the first divided by the second."""
    library, bare = rates["library"], rates["bare"]
    return [f"{library:,.0f}", f"{bare:,.0f}", f"{library / bare:.2f}"]


def busy_cores(seconds: float = 1.0) -> float:
    """How many cores other programs use while this one waits."""
    before = _busy_seconds()
    time.sleep(seconds)
    return (_busy_seconds() - before) / seconds


def disturbance(busy: float) -> str:
    """A sentence for a table if other programs used more than a little when it was measured."""
    if busy <= 0.2:
        return ""
    return f" Disturbed by other programs, which used {busy:.1f} cores at the beginning."


def _busy_seconds() -> float:
    """Time of all cores since the machine started in which they were not idle."""
    line = Path("/proc/stat").read_text().splitlines()[0]
    user, nice, system, _, _, *others = map(int, line.split()[1:9])  # idle and waiting: neither
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def in_new_process(work: Callable[..., int], *arguments: object) -> int:
    """The result of a call in a new process, whose memory nothing has used before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def extra_bytes(work: Callable[[], object]) -> int:
    """The rise of the resident memory of this process during a call."""
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak, VmHWM
    work()
    return max(0, _status("VmHWM") - before)


def extra_bytes_of_all(work: Callable[[], object], every: float = 0.02) -> int:
    """The rise of the memory of this process and its children during a call.

    Memory that several processes share counts once. It is sampled at intervals of `every` seconds;
    a rise counts if it lasts for two samples, as a child that has just been forked is read as if
    it had all the memory of its parent again.
    """
    before, samples, done = _proportional_of_all(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(every):
            samples.append(_proportional_of_all())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    lasting = [min(pair) for pair in pairwise(samples)]
    return max(0, max(lasting, default=0) - before)


def _proportional_of_all() -> int:
    """Bytes of this process and its descendants; a page of n processes counts 1/n in each."""
    return sum(_proportional(process) for process in _process_tree(os.getpid()))


def _process_tree(process: int) -> list[int]:
    try:
        tasks = Path(f"/proc/{process}/task").iterdir()
        children = [int(one) for task in tasks for one in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has ended since
        return []
    return [process, *(one for child in children for one in _process_tree(child))]


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
