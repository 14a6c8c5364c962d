"""Progress callbacks."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate

Progress = Callable[[int, int], None]  # (done, total)
# Gives the context of the step with this name, in which its callback may be called.
ProgressOf = Callable[[str], AbstractContextManager[Progress]]


def part_of(progress: Progress | None, start: int, total: int) -> Progress:
    """Callback of a part that begins at `start`, reporting as progress of the whole `total`."""

    def report(done: int, _: int) -> None:
        if progress is not None:
            progress(start + done, total)

    return report


def parts_of(progress: Progress | None, sizes: Sequence[int]) -> list[Progress]:
    """Callbacks of consecutive parts of these sizes."""
    starts = accumulate(sizes[:-1], initial=0)
    return [part_of(progress, start, sum(sizes)) for start in starts]
