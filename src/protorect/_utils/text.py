"""Text for terminals and pages."""

import os


def printable(name: str | os.PathLike[str]) -> str:
    """A file name in which bytes that are not UTF-8 are written as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def on_one_line(text: object) -> str:
    """The text of an error of another library, shortened, for use inside a sentence."""
    return " ".join((str(text) or type(text).__name__).split())[:500].rstrip(".")
