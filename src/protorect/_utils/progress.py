"""Progress callbacks."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # (done, total)


def part_of(progress: Progress | None, start: int, total: int) -> Progress:
    """Callback of a part that begins at `start`, reporting as progress of the whole `total`."""

    def report(done: int, _: int) -> None:
        if progress is not None:
            progress(start + done, total)

    return report
