"""Text for terminals and pages."""

import os
import re

# Controls of the terminal, and marks that end a line or change the direction of what follows.
_CONTROL = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_ONE_CONTROL = re.compile(f"[{_CONTROL}]")
LONGEST_NAME = 255  # bytes of the name of a file, on all common file systems
_LONGEST = 1500  # characters of a message


def printable(name: str | os.PathLike[str]) -> str:
    """A file name in which bytes that are not UTF-8 and control characters are escapes."""
    if isinstance(name, str) and name.isascii() and name.isprintable():
        return name  # nearly always
    return escaped(os.fsencode(possible_name(name)).decode("utf-8", "backslashreplace"))


def possible_name(name: str | os.PathLike[str]) -> str:
    """The name, with what no file name can contain escaped, so that it names no file."""
    text = os.fspath(name).replace("\0", "\\0")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:  # half of a character of UTF-16
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def escaped(text: str, keep: str = "") -> str:
    r"""The text with control characters, except those to `keep`, escaped as in "\x1b"."""
    return _ONE_CONTROL.sub(
        lambda sign: sign[0] if sign[0] in keep else sign[0].encode("unicode_escape").decode(), text
    )


def on_one_line(text: object) -> str:
    """The text of an error of another library, shortened, for use inside a sentence."""
    line = " ".join((str(text) or type(text).__name__).split())
    return escaped(line[:500].rstrip("."))


def as_message(text: str) -> str:
    """One line without control characters; the middle of a very long one is elided."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return escaped(text)


def numbered(name: str, number: int) -> str:
    """A file name with a number, as in "a (2).jpg"; a long one is shortened to fit."""
    stem, suffix = os.path.splitext(name)
    end = f" ({number}){suffix}"
    while stem and len(os.fsencode(stem + end)) > LONGEST_NAME:
        stem = stem[:-1]
    return stem + end
