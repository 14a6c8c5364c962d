"""Parameters described once: what is checked, parsed and inherited."""

from collections.abc import Sequence
from typing import Any, Literal

import pytest

from protorect._utils.parameters import Parameters, parameter
from protorect.errors import OptionError


def as_floats(given):
    if isinstance(given, str):
        raise OptionError("mean must be numbers.")
    return tuple(float(number) for number in given)


class Options(Parameters):
    rounds: int = parameter(3, "Number of rounds.", minimum=1)
    limit: int | None = parameter(8, "Largest number of queries.")
    power: float = parameter(0.5, "Exponent.", minimum=0.01, maximum=10)
    scale: float = parameter(1.0, "Factor.")
    shift: bool = parameter(True, "Whether queries are shifted.")
    rank: Literal["cosine", "softmax"] = parameter("cosine", "Order of the queries.")
    mean: Sequence[float] | None = parameter(None, "Mean feature.", convert=as_floats)


class Derived(Options):
    rounds: int = 5
    scale: float = parameter(2.0, minimum=1e-6)


def by_name(cls):
    return {one.name: one for one in cls.parameters()}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rounds": 0}, "rounds is 0; it must be a whole number from 1 up."),
        ({"rounds": 1.0}, "rounds is 1.0; it must be a whole number from 1 up."),
        ({"rounds": True}, "rounds is True; it must be a whole number from 1 up."),
        ({"rounds": None}, "rounds is None; it must be a whole number from 1 up."),
        ({"limit": -1}, "limit is -1; it must be 0, 1, 2, ... or None for no limit."),
        ({"power": 0}, "power is 0; it must lie in 0.01 .. 10."),
        ({"power": 11}, "power is 11; it must lie in 0.01 .. 10."),
        ({"power": float("nan")}, "power is nan; it must lie in 0.01 .. 10."),
        ({"power": "1"}, "power is '1'; it must lie in 0.01 .. 10."),
        ({"scale": 1e7}, "scale is 10000000.0; it must lie in 0 .. 1e+06."),
        ({"shift": "no"}, "shift is 'no'; it must be True or False."),
        ({"rank": "cosin"}, "unknown rank 'cosin'. Did you mean 'cosine'?"),
        ({"mean": "abc"}, "mean must be numbers."),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(given, message):
    with pytest.raises(OptionError) as error:
        Options(**given)
    assert str(error.value).startswith(message)


def test_allowed_values_are_stored_and_converted():
    options = Options(rounds=1, limit=None, power=10, shift=False, rank="softmax", mean=[1, 2])
    assert (options.rounds, options.limit, options.power) == (1, None, 10)
    assert options.mean == (1.0, 2.0)
    assert Options().mean is None


def test_a_subclass_inherits_what_it_does_not_change():
    rounds, scale = by_name(Derived)["rounds"], by_name(Derived)["scale"]
    assert (rounds.default, rounds.description, rounds.minimum) == (5, "Number of rounds.", 1)
    assert (scale.default, scale.description, scale.minimum) == (2.0, "Factor.", 1e-6)
    assert by_name(Options)["scale"].minimum == 0
    assert list(by_name(Derived)) == list(by_name(Options))
    with pytest.raises(OptionError, match="rounds is 0"):
        Derived(rounds=0)
    with pytest.raises(OptionError, match="scale is 0"):
        Derived(scale=0)


def test_text_is_parsed_in_the_type_of_the_field():
    options = by_name(Options)
    assert options["rounds"].parse("4") == 4
    assert options["limit"].parse("all") is options["limit"].parse("none") is None
    assert options["power"].parse("1e-1") == 0.1
    assert options["shift"].parse("No") is False
    assert options["rank"].parse("softmax") == "softmax"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rounds", "all", "rounds=all: a whole number is expected."),
        ("limit", "1.5", "limit=1.5: a whole number or all is expected."),
        ("power", "x", "power=x: a number is expected."),
        ("shift", "1", "shift=1: true or false is expected."),
        ("mean", "1", "mean can be given in Python only, by with_options(mean=...)."),
    ],
)
def test_text_that_is_no_value_is_refused(name, text, message):
    with pytest.raises(OptionError) as error:
        by_name(Options)[name].parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "annotation", [dict[str, int], str, Any, int | str, str | None, Sequence[float] | None]
)
def test_a_type_without_a_check_is_an_error(annotation):
    fields = {"__annotations__": {"x": annotation}, "x": parameter(None, "Something.")}
    with pytest.raises(TypeError, match="no check is known for .*'x'"):
        type("Unknown", (Parameters,), fields)()


def test_a_limit_that_is_not_checked_is_an_error():
    class Limited(Parameters):
        rounds: int = parameter(3, "Number of rounds.", maximum=5)

    with pytest.raises(TypeError, match="no check is known"):
        Limited()


def test_without_fields_there_are_no_parameters():
    assert Parameters.parameters() == ()
    assert Parameters() == Parameters()
    with pytest.raises(TypeError):
        Parameters(1)


def test_a_field_without_a_description_is_an_error():
    class Undescribed(Parameters):
        rounds: int = 3

    with pytest.raises(TypeError, match="description"):
        Undescribed()
