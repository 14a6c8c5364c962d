"""Progress on standard error: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress as Bar

from protorect._utils.progress import Progress
from protorect.cli.terminal import drawable

if TYPE_CHECKING:
    from protorect.training.loop import StepReport

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Give a progress callback that shows a bar, or prints a line every ten seconds."""
    with _bar() as bar:
        task, last = bar.add_task(label, total=None), time.monotonic()
        start, first = last, 0

        def update(done: int, total: int) -> None:
            nonlocal start, first, last
            now = time.monotonic()
            if not first:  # what an interrupted run had done before counts for nothing
                start, first = now, done
            rate = (done - first) / max(now - start, 1e-9)
            speed = f" ({rate:.0f}/s)" if rate else ""
            bar.update(task, completed=done, total=total, description=f"{label}{speed}")
            if bar.disable and now - last >= _SECONDS_BETWEEN_LINES and done < total:
                last = now
                left = f", {(total - done) / rate:.0f} s left" if rate else ""
                print(f"{label}: {done} of {total}{speed}{left}", file=sys.stderr, flush=True)

        yield update


@contextmanager
def training_progress(
    epochs: int,
) -> Iterator[tuple[Callable[["StepReport"], None], Callable[[dict[str, Any]], None]]]:
    """Give the two callbacks of a training: a bar for the steps, a line for each epoch."""
    with _bar() as bar:
        task = bar.add_task("training", total=None)

        def step(report: "StepReport") -> None:
            text = (
                f"epoch {report.epoch + 1}/{epochs}  loss {report.loss:.3f}  "
                f"accuracy {report.accuracy:.1f} %  {report.images_per_second:.0f} images/s"
            )
            done = report.epoch * report.steps + report.step
            bar.update(task, completed=done, total=epochs * report.steps, description=text)

        def epoch(line: dict[str, Any]) -> None:
            parts = [f"loss {line['loss']:.3f}", f"accuracy {line['accuracy']:.1f} %"]
            if "validation" in line:
                interval = f"{line['validation']:.2f} ± {line['validation_ci95']:.2f} %"
                parts.append(f"validation {interval}")
            parts.append(f"{line['images_per_second']:.0f} images/s")
            text = f"epoch {line['epoch']}/{epochs}: {', '.join(parts)}"
            # One line per epoch, however narrow the terminal.
            bar.console.print(text, highlight=False, soft_wrap=True)

        yield step, epoch


def _bar() -> Bar:
    console = Console(file=drawable(sys.stderr))
    return Bar(console=console, transient=True, disable=not sys.stderr.isatty())
