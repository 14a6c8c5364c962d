"""Which text can name a class: it must also be the name of a folder on every operating system."""

import os
import unicodedata
from collections.abc import Iterable

from protorect.errors import ConflictError, OptionError
from protorect.labeling.prediction import UNKNOWN, UNSURE

_LONGEST = 200  # bytes in UTF-8
# Windows makes no folders of these names.
_DEVICES = (
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{name}{n}" for name in ("com", "lpt") for n in range(10)),
)
_NOT_IN_NAMES = frozenset('/\\:*?"<>|')


def checked_class_name(name: object) -> str:
    """The name without spaces around it, in Unicode's composed form; OptionError if unusable."""
    if not isinstance(name, str):
        raise OptionError(f"the name of a class is {name!r}; it must be text.")
    cleaned = unicodedata.normalize("NFC", name).strip()
    if problem := name_problem(cleaned):
        shown = cleaned if len(cleaned) <= 60 else f"{cleaned[:60]}..."
        raise OptionError(
            f"{shown!r} cannot name a class: {problem}. Use letters, digits, spaces and dashes."
        )
    return cleaned


def check_is_new(name: str, present: Iterable[str]) -> None:
    """Raise ConflictError if a class has this name, in upper or lower case.

    On some systems folders whose names differ in case only are the same folder.
    """
    folded = name.casefold()
    for other in present:
        if other.casefold() == folded:
            differs = "" if other == name else ", which differs in upper and lower case only"
            raise ConflictError(f"there is a class {other!r} already{differs}; give another name.")


def name_problem(name: str, reserved: Iterable[str] = ()) -> str:
    """Why this cannot name a class; "" if it can. `reserved` names are in lower case."""
    if not name:
        return "it is empty"
    try:
        length = len(os.fsencode(name))
    except UnicodeEncodeError:
        return "it is not Unicode text"
    if length > _LONGEST:
        return f"it has {length} bytes in UTF-8, at most {_LONGEST} are allowed"
    if wrong := sorted(set(name) & _NOT_IN_NAMES):
        return f"it contains {' '.join(wrong)}"
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        return "it contains a control character"
    if name.startswith(".") or name.endswith("."):
        return "it begins or ends with a dot"
    if name != name.strip():
        return "it begins or ends with a space"
    is_reserved = name.casefold() in (UNKNOWN, UNSURE, *_DEVICES, *reserved)
    return "this name is reserved" if is_reserved else ""
