"""Errors that a user can cause and repair.

    ProtorectError                 (ValueError)
    |-- DataError                  a file or an array that cannot be used
    |-- OptionError                a name or a value that is not allowed
    |-- NotFoundError              a picture, a class or an act that a project does not have
    |-- ConflictError              an act that somebody else's act has overtaken; a name in use
    |-- MissingExtraError          an optional dependency that is not installed
    `-- PartialError               work that stopped before its end; its results so far are kept

A message says what is wrong, what was given, what is allowed and what to do. The command line
prints it on one line and exits with code 2, or with 1 for a PartialError.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class ProtorectError(ValueError):
    """Base class of all errors that a user can cause and repair.

    Examples
    --------
    >>> import protorect
    >>> try:
    ...     protorect.method("bd-cspn:z=-1")
    ... except protorect.ProtorectError as error:
    ...     print(error)
    z is -1; it must be a whole number from 0 up or None.
    """


class DataError(ProtorectError):
    """A file or an array that cannot be used.

    Examples
    --------
    >>> import protorect
    >>> protorect.load_features("missing.npz")
    Traceback (most recent call last):
    ...
    protorect.errors.DataError: there is no file missing.npz.
    """


class OptionError(ProtorectError):
    """A name or a value that is not allowed.

    Examples
    --------
    >>> import protorect
    >>> protorect.Thresholds(unsure=2)
    Traceback (most recent call last):
    ...
    protorect.errors.OptionError: unsure is 2; it must lie in 0 .. 1.
    """


class NotFoundError(ProtorectError):
    """A picture, a class, an act or the like that a labeling project does not have.

    Examples
    --------
    >>> import protorect
    >>> issubclass(protorect.NotFoundError, protorect.ProtorectError)
    True
    """


class ConflictError(ProtorectError):
    """An act on pictures that somebody else has labeled since, or a name that is in use.

    Examples
    --------
    >>> import protorect
    >>> issubclass(protorect.ConflictError, protorect.ProtorectError)
    True
    """


class MissingExtraError(ProtorectError):
    """An optional dependency that is not installed; the message has the line that installs it.

    Examples
    --------
    >>> import protorect
    >>> issubclass(protorect.MissingExtraError, protorect.ProtorectError)
    True
    """


class PartialError(ProtorectError):
    """Work that stopped before its end; its results so far are kept.

    Examples
    --------
    >>> import protorect
    >>> issubclass(protorect.PartialError, protorect.ProtorectError)
    True
    """


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Turn an ImportError into the error with the line that installs it; `what` begins it."""
    try:
        yield
    except ImportError as error:
        line = f"pip install 'protorect[{extra}]'"
        raise MissingExtraError(f"{what}, which is not installed: {line}.") from error


@contextmanager
def naming(what: object) -> Iterator[None]:
    """Begin the message of an error with what it is about, such as the name of a file."""
    try:
        yield
    except ProtorectError as error:
        raise type(error)(f"{what}: {error}") from error


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> OptionError:
    """The error for a name that is not allowed, with the most similar allowed one suggested."""
    names = sorted(allowed)
    near = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return OptionError(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}.")


def damaged(path: object, reason: str, remedy: str) -> DataError:
    """The error for a damaged file that protorect wrote; `remedy` is a sentence."""
    return DataError(f"{path} is damaged: {reason}. {remedy}")
