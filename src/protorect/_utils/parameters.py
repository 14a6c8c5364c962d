"""Checks of the values that options may have: one sentence on what was given and is allowed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TypeGuard

from protorect.errors import OptionError, unknown_name

LARGEST_FACTOR = 1e6  # of cosines: beyond it a softmax is a maximum, and float32 runs out


def check_choice(name: str, given: object, allowed: tuple[str, ...]) -> None:
    """One of a few words."""
    if given not in allowed:
        raise unknown_name(name, str(given), allowed)


def check_flag(name: str, given: object) -> None:
    """True or False."""
    if given not in (True, False):
        raise OptionError(f"{name} is {given!r}; it must be True or False.")


def check_whole(name: str, given: object, least: int = 0) -> None:
    """A whole number, `least` or more."""
    if not is_whole(given) or given < least:
        raise OptionError(f"{name} is {given!r}; it must be a whole number from {least} up.")


def check_number(name: str, given: object, least: float = 0, most: float = LARGEST_FACTOR) -> None:
    """A number in `least` .. `most`, both included."""
    if not (isinstance(given, Real) and least <= float(given) <= most):
        raise OptionError(f"{name} is {given!r}; it must lie in {least:g} .. {most:g}.")


def is_whole(given: object) -> TypeGuard[int]:
    """Whether it is a whole number; True and False are not."""
    return isinstance(given, Integral) and not isinstance(given, bool)
