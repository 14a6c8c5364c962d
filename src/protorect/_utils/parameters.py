"""Parameters, each described once: type, default, allowed values and meaning.

    class RidgeOptions(Parameters):
        penalty: float = parameter(1.0, "Weight of the squared weights.", minimum=1e-6)

The checks, `name=value` on the command line and the documents all come from this description.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, dataclass_transform, get_args, get_origin, get_type_hints

from protorect.errors import OptionError, unknown_name

LARGEST_SIZE = 1024  # pixels per side of a picture that is packed or embedded
PRECISIONS = ("auto", "bfloat16", "float32")  # "auto": bfloat16 where it is fast
LARGEST_FACTOR = 1e6  # of cosines: beyond it a softmax is a maximum, and float32 overflows


def parameter(
    default: Any,
    description: str | None = None,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """A field of a subclass of `Parameters`.

    A number lies in `minimum` .. `maximum`, both included; without them in 0 .. LARGEST_FACTOR, a
    whole number from 0 up. `convert` checks a value of any other type: it returns the value to
    store or raises OptionError. What is not given here is as in the base class.
    """
    limits = {"minimum": minimum, "maximum": maximum}
    metadata = {"description": description, "convert": convert, **limits}
    return field(default=default, metadata={k: v for k, v in metadata.items() if v is not None})


@dataclass(frozen=True)
class Parameter:
    """Description of one field; see `parameter`."""

    name: str
    annotation: Any
    default: Any
    description: str
    minimum: float = 0
    maximum: float = LARGEST_FACTOR
    convert: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        whole = self.type is int and self.maximum == LARGEST_FACTOR
        checked = whole or self.type in (bool, float) or get_origin(self.type) is Literal
        if not checked and self.convert is None:
            raise TypeError(f"no check is known for {self}; give it a conversion.")

    @property
    def optional(self) -> bool:
        """Whether None is allowed."""
        return NoneType in get_args(self.annotation)

    @property
    def type(self) -> Any:
        """The type of a value that is not None."""
        return get_args(self.annotation)[0] if self.optional else self.annotation

    def validated(self, value: Any) -> Any:
        """The value to store; raise OptionError if it is not allowed."""
        if self.optional and value is None:
            return None
        if self.convert is not None:
            return self.convert(value)
        if self.type is bool:
            check_flag(self.name, value)
        elif self.type is int:
            check_whole(self.name, value, int(self.minimum), optional=self.optional)
        elif self.type is float:
            check_number(self.name, value, self.minimum, self.maximum)
        else:
            check_choice(self.name, value, get_args(self.type))
        return value

    def parse(self, text: str) -> Any:
        """The value that is written as `text` on the command line."""
        if self.optional and text in ("all", "none"):
            return None
        if self.convert is not None:
            call = f"with_options({self.name}=...)"
            raise OptionError(f"{self.name} can be given in Python only, by {call}.")
        expected = "a number"
        try:
            if self.type is bool:
                expected = "true or false"
                return {"true": True, "false": False, "yes": True, "no": False}[text.lower()]
            if self.type is int:
                expected = "a whole number or all" if self.optional else "a whole number"
                return int(text)
            return float(text) if self.type is float else text
        except (ValueError, KeyError):
            raise OptionError(f"{self.name}={text}: {expected} is expected.") from None


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Parameters:
    """A set of parameters: none, and in subclasses those that `parameter` describes.

    Every subclass is a frozen dataclass, without a decorator.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    @classmethod
    @cache
    def parameters(cls) -> tuple[Parameter, ...]:
        """Descriptions of the fields, completed from those of the base classes."""
        descriptions: dict[str, dict[str, Any]] = {}
        for base in reversed(cls.__mro__):
            for one in vars(base).get("__dataclass_fields__", {}).values():
                own = {"default": one.default, **one.metadata}
                descriptions[one.name] = descriptions.get(one.name, {}) | own
        types = get_type_hints(cls)
        return tuple(Parameter(name, types[name], **own) for name, own in descriptions.items())

    def __post_init__(self) -> None:
        for one in self.parameters():
            object.__setattr__(self, one.name, one.validated(getattr(self, one.name)))


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise OptionError if the value is none of the allowed words."""
    if value not in allowed:
        raise unknown_name(name, str(value), allowed)


def check_flag(name: str, value: object) -> None:
    """Raise OptionError if the value is neither True nor False."""
    if value not in (True, False):
        raise OptionError(f"{name} is {value!r}; it must be True or False.")


def check_whole(name: str, value: object, least: int = 0, *, optional: bool = False) -> None:
    """Raise OptionError if the value is not a whole number, `least` or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        allowed = f"a whole number from {least} up"
        if optional:
            allowed = f"{least}, {least + 1}, {least + 2}, ... or None for no limit"
        raise OptionError(f"{name} is {value!r}; it must be {allowed}.")


def check_number(name: str, value: object, least: float = 0, most: float = LARGEST_FACTOR) -> None:
    """Raise OptionError if the value is not a number in `least` .. `most`, both included."""
    if not (isinstance(value, Real) and least <= float(value) <= most):
        raise OptionError(f"{name} is {value!r}; it must lie in {least:g} .. {most:g}.")
