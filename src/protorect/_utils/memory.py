"""How this process deals with the memory it has freed."""

from __future__ import annotations

import ctypes
import sys

# Names of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_LARGEST_INT = 2**31 - 1


def keep_freed_memory() -> None:
    """Keep large freed blocks for the next ones instead of handing them back to the system.

    A network frees and asks for the same few hundred megabytes at every step. By default glibc
    returns each large block at once, and the system clears its pages anew when they are next
    asked for, which takes as long as the arithmetic. It concerns the whole process, so only a
    program calls this, not the library. Where the C library is another one, nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None:
        adjust(_M_MMAP_MAX, 0)
        adjust(_M_TRIM_THRESHOLD, _LARGEST_INT)
