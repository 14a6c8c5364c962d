"""Parameters described once: what is checked, parsed and inherited."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest

from protorect._utils.parameters import Parameters, format_value, parameter
from protorect.errors import OptionError


def as_floats(given):
    if isinstance(given, str):
        raise OptionError("mean must be numbers.")
    return tuple(float(number) for number in given)


NETWORKS = {"a": 1, "b": 2}


DEEP = "[" * 5000


class Options(Parameters):
    rounds: int = parameter(3, "Number of rounds.", minimum=1)
    limit: int | None = parameter(8, "Largest number of queries.")
    power: float = parameter(0.5, "Exponent.", minimum=0.01, maximum=10)
    scale: float = parameter(1.0, "Factor.")
    shift: bool = parameter(True, "Whether queries are shifted.")
    rank: Literal["cosine", "softmax"] = parameter("cosine", "Order of the queries.")
    channels: Literal[1, 3] | None = parameter(None, "Of the pictures.")
    network: str = parameter("a", "Name of the network.", choices=NETWORKS)
    side: int = parameter(84, "Pixels per side.", minimum=8, maximum=1024, aliases=("width",))
    momentum: float = parameter(0.9, "Of the descent.", below=1)
    std: tuple[float, ...] = parameter((1.0,), "Of the pixels.", above=0, maximum=1)
    shots: tuple[int, ...] = parameter((1, 5), "Samples per class.", minimum=1)
    rates: tuple[tuple[float, float], ...] = parameter(
        (), "Learning rates.", below=math.inf, pair=("epoch", "rate")
    )
    sizes: tuple[tuple[int, int], ...] = parameter(((0, 84),), "Sizes.", pair=("epoch", "side"))
    concentration: float | None = parameter(None, "Of a distribution.", above=0)
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
        ({"limit": -1}, "limit is -1; it must be a whole number from 0 up or None."),
        (
            {"concentration": 0},
            "concentration is 0; it must lie in 0 .. 1e+06, excluding 0, or None.",
        ),
        ({"power": 0}, "power is 0; it must lie in 0.01 .. 10."),
        ({"power": 11}, "power is 11; it must lie in 0.01 .. 10."),
        ({"power": float("nan")}, "power is nan; it must lie in 0.01 .. 10."),
        ({"power": "1"}, "power is '1'; it must lie in 0.01 .. 10."),
        ({"scale": 1e7}, "scale is 10000000.0; it must lie in 0 .. 1e+06."),
        ({"shift": "no"}, "shift is 'no'; it must be true or false."),
        ({"rank": "cosin"}, "unknown rank 'cosin'. Did you mean 'cosine'?"),
        ({"mean": "abc"}, "mean must be numbers."),
        ({"power": True}, "power is True; it must lie in 0.01 .. 10."),
        ({"shift": 1}, "shift is 1; it must be true or false."),
        ({"rank": ["cosine"]}, """unknown rank "['cosine']"."""),
        ({"channels": 2}, "unknown channels '2'. Known: 1, 3."),
        ({"channels": True}, "unknown channels 'True'."),
        ({"network": "c"}, "unknown network 'c'. Known: a, b."),
        ({"side": 1025}, "side is 1025; it must be a whole number in 8 .. 1024."),
        ({"momentum": 1}, "momentum is 1; it must lie in 0 .. 1, excluding 1."),
        ({"std": [0.0]}, "std is [0.0]; it must be a list of numbers in 0 .. 1, excluding 0."),
        ({"std": ()}, "std is (); it must be a list of numbers"),
        ({"std": 0.5}, "std is 0.5; it must be a list of numbers"),
        ({"shots": [1, 0]}, "shots is [1, 0]; it must be a list of whole numbers from 1 up."),
        ({"rates": 1}, "rates is 1; it must be a list of [epoch, rate], numbers from 0 up."),
        ({"rates": [[0, 1, 2]]}, "rates is [[0, 1, 2]]; it must be a list of [epoch, rate]"),
        ({"rates": [[0, math.inf]]}, "rates is [[0, inf]]; it must be a list of [epoch, rate]"),
        ({"rates": [[0, True]]}, "rates is [[0, True]]; it must be a list of [epoch, rate]"),
        ({"rounds": -(16**9000)}, "rounds is a number of thousands of digits; it must be a whole"),
        ({"sizes": [[0, 2.5]]}, "sizes is [[0, 2.5]]; it must be a list of [epoch, side], whole"),
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
    options = Options(std=[0.5, 1], shots=[2], rates=[[0, 1e30]], channels=3, shift=np.True_)
    assert (options.std, options.shots, options.channels) == ((0.5, 1), (2,), 3)
    assert options.rates == ((0, 1e30),)
    assert options.shift
    assert Options(rounds=10**400).rounds == 10**400


def test_a_subclass_inherits_what_it_does_not_change():
    rounds, scale = by_name(Derived)["rounds"], by_name(Derived)["scale"]
    assert (rounds.default, rounds.description) == (5, "Number of rounds.")
    assert (scale.default, scale.description) == (2.0, "Factor.")
    assert scale.constraint.allowed == "a number in 1e-06 .. 1e+06"
    assert by_name(Options)["scale"].constraint.allowed == "a number in 0 .. 1e+06"
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
    assert options["rank"].parse("softmax") == options["rank"].parse('"softmax"') == "softmax"
    assert options["channels"].parse("3") == 3
    assert options["std"].parse("0.5/1") == [0.5, 1.0]
    assert options["rates"].parse("[[0, 0.1], [5, 1e-3]]") == [[0, 0.1], [5, 1e-3]]


@pytest.mark.parametrize("one", Options.parameters(), ids=lambda one: one.name)
def test_the_text_of_a_default_is_parsed_as_the_default(one):
    if one.default is not None or one.name != "mean":
        assert one.validated(one.parse(format_value(one.default))) == one.default


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rounds", "all", "rounds=all: a whole number is expected."),
        ("limit", "1.5", "limit=1.5: a whole number or none is expected."),
        ("power", "x", "power=x: a number is expected."),
        ("shift", "1", "shift=1: true or false is expected."),
        ("std", "x/1", "std=x/1: a number, or several as in 0.5/0.4/0.3, is expected."),
        ("rates", "[[", "rates=[[: a list such as [[epoch, rate], ...] is expected."),
        ("rates", DEEP, f"rates={DEEP}: a list such as [[epoch, rate], ...] is expected."),
        ("mean", "1", "mean cannot be text; set it in Python, by with_options(mean=...)."),
    ],
)
def test_text_that_is_no_value_is_refused(name, text, message):
    with pytest.raises(OptionError) as error:
        by_name(Options)[name].parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "annotation",
    [
        *(dict[str, int], str, Any, int | str, int | str | None, str | None),
        *(Sequence[float] | None, tuple[int, float], tuple[str, ...], list[int]),
    ],
)
def test_a_type_without_a_check_is_an_error_of_the_class(annotation):
    fields = {"__annotations__": {"x": annotation}, "x": parameter(None, "Something.")}
    with pytest.raises(TypeError, match="x: no check is known"):
        type("Unknown", (Parameters,), fields)


@pytest.mark.parametrize("annotation", [bool, Literal["a"], Sequence[float]])
def test_a_limit_that_is_not_checked_is_an_error_of_the_class(annotation):
    convert = as_floats if annotation == Sequence[float] else None
    described = parameter(None, "Something.", maximum=5, convert=convert)
    with pytest.raises(TypeError, match="maximum"):
        type("Limited", (Parameters,), {"__annotations__": {"x": annotation}, "x": described})


def test_without_fields_there_are_no_parameters():
    assert Parameters.parameters() == ()
    assert Parameters() == Parameters()
    with pytest.raises(TypeError):
        Parameters(1)


def test_a_field_without_a_description_is_an_error_of_the_class():
    with pytest.raises(TypeError, match="description"):

        class Undescribed(Parameters):
            rounds: int = 3


def test_values_by_name_and_by_an_earlier_name():
    assert Options.parse(["rounds=4", "width = 28", "rounds=5"]) == {"rounds": 5, "side": 28}
    assert Options().updated({"width": 28, "rounds": 2}) == Options(side=28, rounds=2)
    assert (Options.canonical("width"), Options.canonical("other")) == ("side", "other")
    assert Derived.find("width").name == "side"


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: Options.parse(["round=4"]), "unknown option 'round'. Did you mean 'rounds'?"),
        (
            lambda: Options.parse(["rounds"]),
            "'rounds' is no option; write name=value, as in rounds=3.",
        ),
        (lambda: Options().updated({"round": 4}), "unknown option 'round'. Did you mean 'rounds'?"),
        (lambda: Options().updated({"width": 4}), "side is 4; it must be a whole number in 8"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(use, message):
    with pytest.raises(OptionError) as error:
        use()
    assert str(error.value).startswith(message)
