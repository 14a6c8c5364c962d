"""Parameters, each described once: type, default, allowed values and meaning.

    class RidgeOptions(Parameters):
        penalty: float = parameter(1.0, "Weight of the squared weights.", minimum=1e-6)

The checks, `name=value`, the options of the commands and the documents all come from this
description. A type is bool, int, float, Literal, str with `choices`, a tuple of numbers or a list
of pairs of numbers, or one of these and None; any other type needs `convert`.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform, get_type_hints

from protorect._utils.constraints import Constraint, choice, constraint_of, flag, number
from protorect.errors import OptionError, unknown_name

LARGEST_SIZE = 1024  # pixels per side of a picture that is packed or embedded
PRECISIONS = ("auto", "bfloat16", "float32")  # "auto": bfloat16 where it is fast
EMBEDDING_PRECISIONS = (*PRECISIONS, "int8")  # "auto": the fastest without loss


def parameter(
    default: Any,
    description: str | None = None,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Collection[Any] | None = None,
    pair: tuple[str, str] | None = None,
    aliases: tuple[str, ...] | None = None,
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """A field of a subclass of `Parameters`; what is not given here is inherited.

    Parameters
    ----------
    default, description
        Its default value; what it means, in whole sentences.
    minimum, maximum
        Limits of a number, included. Without limits a whole number is 0 or more, any other number
        in 0 .. LARGEST_FACTOR.
    above, below
        Limits of a number, excluded.
    choices
        The only allowed values: names or whole numbers.
    pair
        What the two numbers are, for a list of pairs.
    aliases
        Earlier names, which are still understood.
    convert
        Checks a value of any other type: returns the value to store or raises OptionError.
    """
    limits = {"minimum": minimum, "maximum": maximum, "above": above, "below": below}
    values = {"choices": choices, "pair": pair, "convert": convert}
    given = {"description": description, "aliases": aliases, **limits, **values}
    return field(default=default, metadata={k: v for k, v in given.items() if v is not None})


@dataclass(frozen=True)
class Parameter:
    """Description of one field; see `parameter`."""

    name: str
    default: Any
    description: str
    constraint: Constraint
    aliases: tuple[str, ...] = ()

    def validated(self, value: Any) -> Any:
        """The value to store; OptionError if it is not allowed."""
        return self.constraint.validated(self.name, value)

    def parse(self, text: str) -> Any:
        """The value that is written as `text`, yet to be validated."""
        return self.constraint.parsed(self.name, text)


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Parameters:
    """Base class of parameter sets; subclasses declare fields with `parameter`.

    Every subclass is a frozen dataclass, without a decorator. A field that nothing describes or
    checks is a TypeError when the class is created.
    """

    kind: ClassVar[str] = "option"  # what a parameter is called in messages

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        cls.parameters()

    def __post_init__(self) -> None:
        for one in self.parameters():
            object.__setattr__(self, one.name, one.validated(getattr(self, one.name)))

    @classmethod
    @cache
    def parameters(cls) -> tuple[Parameter, ...]:
        """Descriptions of the fields, completed from those of the base classes."""
        descriptions: dict[str, dict[str, Any]] = {}
        for base in reversed(cls.__mro__):
            for one in fields(base) if is_dataclass(base) else ():
                own = {"default": one.default, **one.metadata}
                descriptions[one.name] = descriptions.get(one.name, {}) | own
        types = get_type_hints(cls)
        return tuple(_described(name, types[name], **own) for name, own in descriptions.items())

    @classmethod
    def canonical(cls, name: str) -> str:
        """The present name of a parameter that may be given by an earlier one."""
        return next((one.name for one in cls.parameters() if name in one.aliases), name)

    @classmethod
    def find(cls, name: str) -> Parameter:
        """The parameter of this name, which may be an earlier one; OptionError if there is none."""
        known = {one.name: one for one in cls.parameters()}
        if cls.canonical(name) not in known:
            raise unknown_name(cls.kind, name, known)
        return known[cls.canonical(name)]

    @classmethod
    def parse(cls, items: Iterable[str]) -> dict[str, Any]:
        """The values of items such as "epochs=12", by name; later items override."""
        values = {}
        for item in items:
            name, equals, text = (part.strip() for part in item.partition("="))
            if not equals:
                first = cls.parameters()[0]
                example = f"{first.name}={format_value(first.default)}"
                raise OptionError(f"{item!r} is no {cls.kind}; write name=value, as in {example}.")
            one = cls.find(name)
            values[one.name] = one.parse(text)
        return values

    def updated(self, changes: Mapping[str, Any]) -> Self:
        """The same parameters with other values, by name."""
        return replace(self, **{self.find(name).name: value for name, value in changes.items()})


def _described(
    name: str,
    annotation: Any,
    *,
    default: Any,
    description: str,
    aliases: tuple[str, ...] = (),
    **limits: Any,
) -> Parameter:
    try:
        return Parameter(name, default, description, constraint_of(annotation, **limits), aliases)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def check_choice(name: str, value: object, allowed: Collection[str]) -> None:
    """Raise OptionError if the value is none of the allowed words."""
    choice(allowed).validated(name, value)


def check_flag(name: str, value: object) -> None:
    """Raise OptionError if the value is neither True nor False."""
    flag().validated(name, value)


def check_positive(name: str, value: object) -> None:
    """Raise OptionError if the value is not a whole number, 1 or more."""
    number(int, 1).validated(name, value)


def format_value(value: Any) -> str:
    """The text that is parsed as this value."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        pairs = any(isinstance(one, tuple) for one in value) or not value
        return json.dumps(value) if pairs else "/".join(map(str, value))
    return str(value)
