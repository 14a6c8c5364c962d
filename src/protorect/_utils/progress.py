"""The type of progress callbacks."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # (done, total)
