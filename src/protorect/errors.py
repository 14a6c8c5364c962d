"""What can go wrong through no fault of ours.

    ProtorectError                 (ValueError)
    |-- DataError                  a file or an array that cannot be used as it is
    |-- OptionError                a name or a value that is not allowed
    |-- MissingExtraError          an optional dependency that is not installed
    `-- PartialError               part of the work was done and is kept; the way on is named

A message says what was wrong, what was given, what is allowed and what to do. The command
line prints it on one line and ends with exit code 2, or 1 where part of the work was done.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ProtorectError(ValueError):
    """A mistake in what was given; the message names the way out."""


class DataError(ProtorectError):
    """A file or an array that cannot be used as it is."""


class OptionError(ProtorectError):
    """A name or a value that is not one of those allowed."""


class MissingExtraError(ProtorectError):
    """An optional dependency that is not installed; the message has the line that installs it."""


class PartialError(ProtorectError):
    """Work that stopped half-way through no mistake; what was done is kept."""


def unknown_name(kind: str, given: str, allowed: Iterable[str]) -> OptionError:
    """The error for a name that is not known, with the nearest known one suggested."""
    names = sorted(allowed)
    near = get_close_matches(given.lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return OptionError(f"unknown {kind} {given!r}.{hint} Known: {', '.join(names)}.")


def damaged(path: object, reason: str, remedy: str) -> DataError:
    """The error for a file of ours that is not as we wrote it; `remedy` is a sentence."""
    return DataError(f"{path} is damaged: {reason}. {remedy}")
