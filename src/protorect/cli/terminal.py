"""Standard output and error on which a name cannot control the terminal."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from protorect._utils.text import escaped


class ShownText:
    """A stream that shows control characters as escapes, so that no name can use them.

    Bars and tables, which use them on purpose, are drawn on its `stream`.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text."""
        return self.stream.write(escaped(text, keep="\n\t"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def shown_output() -> Iterator[None]:
    """Escape what is printed; replace a closed output, and characters that it cannot show."""
    before = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
        setattr(sys, name, ShownText(io.StringIO() if stream is None else stream))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def drawable(stream: TextIO) -> TextIO:
    """The stream itself, for what is drawn by control characters; the names in it are escaped."""
    return stream.stream if isinstance(stream, ShownText) else stream
