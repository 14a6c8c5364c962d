"""JSON, JSON lines and TOML files, checked against a description of what they must hold.

A description is a type (`float` is a finite number, `Path` a file name, `object` anything), a
`range` of whole numbers, one value, `{a, b}` for alternatives, `[item]` for a list, `(a, b)` for a
list of two, or `{"key": ..., "optional?": ...}` for an object, which may have further keys;
`{str: ...}` describes the values of all keys.
"""

import json
import os
import reprlib
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from protorect._utils.files import LARGEST_TEXT, open_file, read_bytes
from protorect._utils.text import printable
from protorect.errors import DataError

COUNT = range(2**53)
_DEEPEST = 100  # lists and objects in each other, so that whatever recurses over them can
_NESTED = (list, tuple, dict)
_LARGEST_TOML = 2**15  # bytes; a dotted key of this length takes tomllib seconds, quadratically
_WORDS: dict[Any, str] = {
    str: "text",
    Path: "a file name",
    bool: "true or false",
    float: "a finite number",
    list: "a list",
    dict: "an object",
    object: "given",
}


def parse_json(
    text: str | bytes, expected: Any, hook: Callable[[dict[str, Any]], Any] | None = None
) -> Any:
    """Parse JSON; ValueError says what is not as described. `hook` replaces each object."""
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(decoded, object_hook=hook)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from error
    if decoded.count("[") + decoded.count("{") > _DEEPEST:  # else it cannot be that deep
        _check_depth(value)
    return checked(value, expected)


def read_json(
    path: str | os.PathLike[str], expected: Any, remedy: str = "", fault: str = "is damaged"
) -> Any:
    """Read a JSON file; DataError "PATH `fault`: reason. `remedy`" if it is not as described."""
    content = read_bytes(path)
    try:
        return parse_json(content, expected)
    except ValueError as error:
        raise DataError(f"{printable(path)} {fault}: {error}. {remedy}".rstrip()) from error


def read_json_lines(
    path: str | os.PathLike[str], expected: Iterable[Any], remedy: str, *, cut_off: bool = False
) -> Iterator[Any]:
    """The lines of a file, each one JSON value, `expected` one description for each.

    If `cut_off`, the last line is ignored where only part of it was written.
    """
    with open_file(path) as file:
        lines = iter(partial(file.readline, LARGEST_TEXT), b"")
        for number, (line, description) in enumerate(zip(lines, expected, strict=False), 1):
            try:
                yield parse_json(line, description)
            except ValueError as error:
                if cut_off and not line.endswith(b"\n"):
                    return
                where = f"{printable(path)}, line {number},"
                raise DataError(f"{where} is damaged: {error}. {remedy}") from error


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file."""
    content = read_bytes(path, _LARGEST_TOML)
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
        _check_depth(document)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{printable(path)} is not a TOML file: {error}.") from error
    return document


def checked(value: Any, expected: Any) -> Any:
    """The value; ValueError, as in "shape[0] is 'a'; it must be text", if not as described."""
    if wrong := _mismatch("", value, expected):
        raise ValueError(wrong.removeprefix("."))
    return value


def _check_depth(value: Any) -> None:
    """ValueError if more lists and objects are in each other than may be."""
    level = [value] if isinstance(value, _NESTED) else []
    for _ in range(_DEEPEST - 1):
        lists = [one.values() if isinstance(one, dict) else one for one in level]
        level = [part for one in lists for part in one if isinstance(part, _NESTED)]
    if level:
        raise ValueError(f"it has more than {_DEEPEST} levels")


def _mismatch(place: str, value: Any, expected: Any) -> str:
    """What is not as described; "" if nothing."""
    if not _fits(value, expected):
        shown = "missing" if value is ... else reprlib.repr(value)
        return f"{place or 'it'} is {shown}; it must be {_in_words(expected)}"
    if isinstance(expected, list) and _all_fit(value, expected[0]):
        return ""
    if isinstance(expected, _NESTED):
        for part in _parts(place, value, expected):
            if wrong := _mismatch(*part):
                return wrong
    return ""


def _parts(place: str, value: Any, expected: Any) -> Iterator[tuple[str, Any, Any]]:
    """Place, value and description of each part of a list or an object."""
    if not isinstance(expected, dict):
        descriptions = expected * len(value) if isinstance(expected, list) else expected
        for number, (part, description) in enumerate(zip(value, descriptions, strict=True)):
            yield f"{place}[{number}]", part, description
        return
    for key, description in expected.items():
        for name in value if key is str else [key.removesuffix("?")]:
            if name in value or not key.endswith("?"):
                yield f"{place}.{name}", value.get(name, ...), description


def _fits(value: Any, expected: Any) -> bool:
    """Whether a value is as described, whatever its parts are."""
    if expected is float:  # neither infinite nor NaN, which Python's JSON accepts
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    if expected is str or expected is Path:
        return isinstance(value, str) and _is_text(value, expected)
    if isinstance(expected, type):
        return isinstance(value, expected) and value is not ...
    if isinstance(expected, range):
        return type(value) is int and value in expected  # True is not taken for 1
    if isinstance(expected, tuple):
        return isinstance(value, list) and len(value) == len(expected)
    if isinstance(expected, list | dict):
        return isinstance(value, type(expected))
    if isinstance(expected, set):
        return any(_fits(value, one) and not _mismatch("", value, one) for one in expected)
    return type(value) is type(expected) and bool(value == expected)


def _all_fit(values: list[Any], expected: Any) -> bool:
    """Whether many values are as described: many times as fast as one at a time."""
    if isinstance(expected, (*_NESTED, set)):
        return False  # these are looked at one at a time
    kinds = set(map(type, values))
    if expected is str or expected is Path:
        return kinds <= {str} and _is_text("".join(values), expected)
    if isinstance(expected, range) and expected.step == 1 and values:
        return kinds == {int} and min(values) in expected and max(values) in expected
    return all(_fits(one, expected) for one in values)


def _is_text(value: str, kind: type) -> bool:
    """Whether it can be written in UTF-8; a file name may have other bytes, as Python has them."""
    try:
        value.encode("utf-8", "surrogateescape" if kind is Path else "strict")
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _in_words(expected: Any) -> str:
    if isinstance(expected, set):
        return " or ".join(sorted(map(_in_words, expected)))
    if isinstance(expected, range):
        return f"a whole number in {expected.start} .. {expected.stop - 1}"
    if isinstance(expected, tuple):
        return f"a list of {len(expected)}"
    kind = type(expected) if isinstance(expected, list | dict) else expected
    return _WORDS[kind] if isinstance(kind, type) else repr(expected)
