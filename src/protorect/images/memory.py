"""One limit of memory for all pictures that are read and decoded at the same time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import ceil
from threading import Condition

from protorect._utils.memory import physical_memory
from protorect.errors import OptionError

MEMORY_VARIABLE = "PROTORECT_DECODING_MB"
DEFAULT_MB, LEAST_MB = 1600, 64
_MB = 2**20
_processes = 1  # that share the memory which the variable names


@cache
def decoding_memory() -> int:
    """Bytes that all threads together may use to decode pictures.

    It is what the environment variable PROTORECT_DECODING_MB says, by default 1600 MB or a quarter
    of the machine's memory, whichever is less.
    """
    text = os.environ.get(MEMORY_VARIABLE, "")
    if not text:
        return int(min(DEFAULT_MB * _MB, max(physical_memory() / 4, LEAST_MB * _MB)))
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) >= LEAST_MB):
        raise OptionError(
            f"the environment variable {MEMORY_VARIABLE} has to be a number of megabytes, at least "
            f"{LEAST_MB}, not {text!r}."
        )
    return int(text) * _MB


def share_decoding_memory(processes: int) -> None:
    """Give this process its part of the memory that several processes share."""
    global _processes
    megabytes = decoding_memory() // _MB // processes
    os.environ[MEMORY_VARIABLE] = str(max(megabytes, LEAST_MB))
    decoding_memory.cache_clear()
    _processes = processes


class MemoryLimit:
    """A part of the memory, of which threads reserve what they are about to use."""

    def __init__(self, part: float) -> None:
        self._part, self._used = part, 0
        self._changed = Condition()

    @property
    def total(self) -> int:
        """Number of bytes; nothing larger can be reserved."""
        return int(decoding_memory() * self._part)

    def exceeded_by(self, count: int) -> str:
        """Say that so many bytes cannot be reserved, and how to allow it."""
        least = ceil(count / self._part / _MB) * _processes
        limit = self.total // _MB
        return f"the limit is {limit:,} MB, set {MEMORY_VARIABLE} to at least {least}"

    @contextmanager
    def reserve(self, count: int) -> Iterator[None]:
        """Wait until so many bytes are free, and hold them for the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._used + count <= self.total)
            self._used += count
        try:
            yield
        finally:
            with self._changed:
                self._used -= count
                self._changed.notify_all()


# A thread reserves memory for a file and then, while it holds that, for its pixels. With one limit
# for both, threads that hold files could deadlock.
FILE_MEMORY = MemoryLimit(1 / 4)
PIXEL_MEMORY = MemoryLimit(3 / 4)
