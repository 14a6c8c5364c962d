"""Checks of option values, with messages that say what was given and what is allowed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TypeGuard

from protorect.errors import OptionError, unknown_name

LARGEST_SIZE = 1024  # pixels per side of a picture that is packed or embedded
LARGEST_FACTOR = 1e6  # of cosines: beyond it a softmax is a maximum, and float32 overflows


def check_choice(name: str, given: object, allowed: tuple[str, ...]) -> None:
    """Raise OptionError if it is none of the allowed words."""
    if given not in allowed:
        raise unknown_name(name, str(given), allowed)


def check_flag(name: str, given: object) -> None:
    """Raise OptionError if it is neither True nor False."""
    if given not in (True, False):
        raise OptionError(f"{name} is {given!r}; it must be True or False.")


def check_whole(name: str, given: object, least: int = 0) -> None:
    """Raise OptionError if it is not a whole number, `least` or more."""
    if not is_whole(given) or given < least:
        raise OptionError(f"{name} is {given!r}; it must be a whole number from {least} up.")


def check_number(name: str, given: object, least: float = 0, most: float = LARGEST_FACTOR) -> None:
    """Raise OptionError if it is not a number in `least` .. `most`, both included."""
    if not (isinstance(given, Real) and least <= float(given) <= most):
        raise OptionError(f"{name} is {given!r}; it must lie in {least:g} .. {most:g}.")


def is_whole(given: object) -> TypeGuard[int]:
    """Whether it is a whole number; True and False are not."""
    return isinstance(given, Integral) and not isinstance(given, bool)
