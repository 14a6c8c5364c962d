"""The values that a parameter may have: how they are checked, read from text and described."""

import math
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, Self, get_args, get_origin

from protorect.errors import OptionError, unknown_name

LARGEST_FACTOR = 1e6  # of cosines: beyond it a softmax is a maximum, and float32 overflows
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_TUPLES: dict[Any, Any] = {tuple[int, ...]: int, tuple[float, ...]: float}
_PAIRS: dict[Any, Any] = {
    tuple[tuple[int, int], ...]: int,
    tuple[tuple[float, float], ...]: float,
}


@dataclass(frozen=True)
class Constraint:
    """The allowed values of a parameter."""

    values: tuple[str, ...]  # noun phrases for the allowed ones, such as "a number in 0 .. 1"
    allows: Callable[[Any], bool]
    expected: str = ""  # what the text of a value is, if that is not one of `values`
    read: Callable[[str], Any] | None = None  # the value of a text, or ValueError or KeyError
    store: Callable[[Any], Any] = lambda value: value  # the value as it is stored
    choices: Collection[Any] = ()  # the only values
    item: "Constraint | None" = None  # of one element, if a value is a tuple of numbers
    optional: bool = False  # whether None is allowed, which is written as none or all
    limits: str = ""  # of a number, such as "in 0 .. 1", for the message "it must lie in 0 .. 1"
    plural: str = ""  # the noun phrase for several numbers

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        return ", ".join(map(str, self.choices)) or self._or_none(self.values, "none")

    def without_none(self) -> Self:
        """The same constraint without None."""
        return replace(self, optional=False)

    def validated(self, name: str, value: Any) -> Any:
        """The value to store; OptionError if it is not allowed."""
        if self.optional and value is None:
            return None
        if self.allows(value):
            return self.store(value)
        if self.choices:
            raise unknown_name(name, str(value), map(str, self.choices))
        verb, what = ("lie", (self.limits,)) if self.limits else ("be", self.values)
        raise OptionError(
            f"{name} is {_shown(value)}; it must {verb} {self._or_none(what, 'None')}."
        )

    def parsed(self, name: str, text: str) -> Any:
        """Parse a text without validating the value; OptionError if it cannot be parsed."""
        if self.optional and text.lower() in ("all", "none"):
            return None
        if self.read is None:
            raise OptionError(
                f"{name} cannot be text; set it in Python, by with_options({name}=...)."
            )
        try:
            return self.read(text)
        except (ValueError, KeyError, RecursionError):
            phrases = (self.expected,) if self.expected else self.values
            expected = self._or_none(phrases, "none")
            raise OptionError(f"{name}={text}: {expected} is expected.") from None

    def _or_none(self, phrases: tuple[str, ...], none: str) -> str:
        """The phrases joined by "or", with the word for None if that is allowed."""
        *others, last = (*phrases, none) if self.optional else phrases
        if not others:
            return last
        comma = "," if "excluding" in others[-1] else ""
        return f"{', '.join(others)}{comma} or {last}"


def flag() -> Constraint:
    """True or False, of Python or numpy."""
    return Constraint(
        ("true", "false"),
        lambda value: type(value).__name__ in ("bool", "bool_"),
        read=lambda text: _FLAGS[text.lower()],
        store=bool,
    )


def choice(choices: Collection[Any]) -> Constraint:
    """One of some names or whole numbers; names may be read with quotation marks."""

    def allows(value: Any) -> bool:
        return (
            not isinstance(value, bool) and isinstance(value, str | Integral) and value in choices
        )

    def read(text: str) -> Any:
        names = {str(one): one for one in choices}
        return names.get(text.strip("\"'"), text)

    return Constraint(("one of the choices",), allows, "a name", read, choices=choices)


def number(
    kind: type[int] | type[float],
    minimum: float = 0,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Constraint:
    """A number in `minimum` .. `maximum`; `above` and `below` are limits that are excluded."""
    unlimited = math.inf if kind is int else LARGEST_FACTOR
    low = minimum if above is None else above
    high = (unlimited if maximum is None else maximum) if below is None else below
    base = Integral if kind is int else Real  # numpy's numbers, too

    def allows(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, base):
            return False
        inside = low <= value <= high  # type: ignore[operator]  # Real has no order
        return inside and value not in (above, below, math.inf)

    text = f"from {low:g} up" if above is None else f"above {low:g}"
    if high < math.inf:
        excluded = " and ".join(f"{limit:g}" for limit in (above, below) if limit is not None)
        text = f"in {low:g} .. {high:g}" + (f", excluding {excluded}" if excluded else "")
    noun = "whole number" if kind is int else "number"
    return Constraint(
        (f"a {noun} {text}",),
        allows,
        f"a {noun}",
        kind,
        lambda value: value if isinstance(value, int | float) else kind(value),
        limits=text if kind is float and high < math.inf else "",
        plural=f"{noun}s {text}",
    )


def numbers(one: Constraint) -> Constraint:
    """A list of one number or more, which slashes separate in a text."""
    return Constraint(
        (f"a list of {one.plural}",),
        lambda value: _is_list(value) and len(value) > 0 and all(map(one.allows, value)),
        f"{one.expected}, or several as in 0.5/0.4/0.3,",
        # `one` is made by `number`, which always gives a `read`.
        lambda text: [one.read(part) for part in text.split("/")],  # type: ignore[misc]
        lambda value: tuple(map(one.store, value)),
        item=one,
    )


def pairs(one: Constraint, names: tuple[str, str]) -> Constraint:
    """A list of pairs of numbers, in a text as in TOML; `names` says what the two are."""

    def is_pair(value: Any) -> bool:
        return _is_list(value) and len(value) == 2 and all(map(one.allows, value))

    pair = f"[{', '.join(names)}]"
    return Constraint(
        (f"a list of {pair}, {one.plural}",),
        lambda value: _is_list(value) and all(map(is_pair, value)),
        f"a list such as [{pair}, ...]",
        lambda text: tomllib.loads(f"pairs = {text}")["pairs"],
        lambda value: tuple(tuple(map(one.store, pair)) for pair in value),
    )


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no whole numbers of thousands of digits
        return "a number of thousands of digits"


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def constraint_of(
    annotation: Any,
    *,
    convert: Callable[[Any], Any] | None = None,
    choices: Collection[Any] = (),
    pair: tuple[str, str] = ("first", "second"),
    **limits: float,
) -> Constraint:
    """The constraint of a type, with None if that is allowed; TypeError if no check is known."""
    alternatives = [one for one in get_args(annotation) if one is not NoneType]
    optional = NoneType in get_args(annotation) and len(alternatives) == 1
    kind = alternatives[0] if optional else annotation
    number_type = _TUPLES.get(kind) or _PAIRS.get(kind) or kind
    if convert is not None:
        found = Constraint(("given in Python",), lambda value: True, store=convert)
    elif choices or get_origin(kind) is Literal:
        found = choice(choices or get_args(kind))
    elif kind is bool:
        found = flag()
    elif number_type in (int, float):
        found, limits = number(number_type, **limits), {}
        found = numbers(found) if kind in _TUPLES else found
        found = pairs(found, pair) if kind in _PAIRS else found
    else:
        raise TypeError(f"no check is known for the type {annotation}; give it a conversion.")
    if limits:
        raise TypeError(f"{', '.join(limits)} cannot be checked for the type {annotation}.")
    return replace(found, optional=optional)
