"""Text for terminals and pages."""

import os


def printable(name: str | os.PathLike[str]) -> str:
    """A file name in which bytes that are not UTF-8 are written as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
