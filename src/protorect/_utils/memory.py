"""Memory of the machine, and what the C library and the interpreter do with freed memory."""

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Names of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_LARGEST_INT = 2**31 - 1


def physical_memory() -> float:
    """Bytes of memory of this machine; infinite if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on every system
        return float("inf")


def keep_freed_memory() -> None:
    """Keep large freed blocks for reuse instead of returning them to the system.

    A network frees and allocates the same few hundred megabytes at every step. By default glibc
    returns each large block at once, and the system clears its pages again at the next allocation,
    which takes as long as the arithmetic. The setting is one of the whole process, so only
    programs call this, not the library. Other C libraries are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None:
        adjust(_M_MMAP_MAX, 0)
        adjust(_M_TRIM_THRESHOLD, _LARGEST_INT)


def return_freed_memory() -> None:
    """Return freed memory to the system.

    glibc keeps what a thread has freed for the same thread, so that the memory of the process would
    grow with the number of threads that have once used much. Other C libraries are left alone.
    """
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Make many objects that stay without a search for unreachable ones among them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
