"""The training recipe: a frozen dataclass, from defaults, a TOML file and `key=value` settings."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from protorect._utils.parameters import check_choice
from protorect.errors import DataError, OptionError, unknown_name


@dataclass(frozen=True)
class TrainingConfig:
    """The training recipe; the defaults are the paper's.

    Parameters
    ----------
    backbone
        One of `protorect.backbones.BACKBONES`.
    seed
        Of the initial weights, the order of the pictures and their augmentation.
    epochs, batch_size, steps_per_epoch
        An epoch is one pass over the pictures, or `steps_per_epoch` steps of `batch_size` pictures.
    rates
        (epoch, learning rate) points, between which the rate of a step is interpolated.
    between_rates
        "hold" keeps a rate until the next point, "linear" and "cosine" interpolate: a one-cycle
        schedule is three points and "linear".
    momentum, nesterov, weight_decay, label_smoothing
        Of stochastic gradient descent and its loss.
    crop_padding, flip
        Pixels of padding for random crops, random mirroring; None for the data set's own.
    smallest_scale
        Below 1, crops show between this fraction of the side and the whole, at any place.
    colour
        Above 0, the largest relative change of brightness, contrast and saturation.
    precision
        "bfloat16" computes the network in it, "float32" does not, "auto" where the processor has
        fast bfloat16.
    channels_last, compile
        Memory layout; whether torch compiles the network first.
    validation_episodes
        5-way 5-shot episodes of the validation classes after each epoch (smaller ones where there
        are too few pictures). They choose the best epoch; without such classes it is the last one.
    """

    backbone: str = "conv64"
    seed: int = 0
    epochs: int = 60
    batch_size: int = 256
    steps_per_epoch: int | None = None
    rates: tuple[tuple[float, float], ...] = ((0, 0.1), (10, 0.01), (20, 0.001), (40, 0.0001))
    between_rates: Literal["hold", "linear", "cosine"] = "hold"
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    label_smoothing: float = 0.0
    crop_padding: int | None = None
    flip: bool | None = None
    smallest_scale: float = 1.0
    colour: float = 0.0
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    channels_last: bool = True
    compile: bool = False
    validation_episodes: int = 300

    def __post_init__(self) -> None:
        for name, least in _MINIMUM.items():
            value = getattr(self, name)
            _check(name, value, value is None or value >= least, f"{least} or more")
        for name in ("momentum", "label_smoothing", "colour"):
            _check(name, getattr(self, name), getattr(self, name) < 1, "below 1")
        _check("smallest_scale", self.smallest_scale, 0 < self.smallest_scale <= 1, "in 0 .. 1")
        check_choice("between_rates", self.between_rates, ("hold", "linear", "cosine"))
        check_choice("precision", self.precision, ("auto", "bfloat16", "float32"))
        starts = [epoch for epoch, _ in self.rates]
        good = starts[:1] == [0] and starts == sorted(starts) and all(r >= 0 for _, r in self.rates)
        _check("rates", self.rates, good, "points (epoch, rate) from epoch 0 on, in order")


_MINIMUM = {
    "seed": 0,
    "epochs": 1,
    "batch_size": 2,
    "steps_per_epoch": 1,
    "momentum": 0,
    "weight_decay": 0,
    "label_smoothing": 0,
    "crop_padding": 0,
    "colour": 0,
    "validation_episodes": 1,
}
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "None": (type(None),),
}


def read_config(
    path: str | os.PathLike[str] | None = None,
    settings: Iterable[str] = (),
    base: TrainingConfig | None = None,
) -> TrainingConfig:
    """Read a configuration: the base, a TOML file over it, settings such as "epochs=12" last."""
    config = base or TrainingConfig()
    if path is not None:
        config = updated(config, _toml(Path(path)))
    return updated(config, dict(_setting(setting) for setting in settings))


def updated(config: TrainingConfig, changes: Mapping[str, Any]) -> TrainingConfig:
    """Return the configuration with these values, after checking their names and types."""
    for name, value in changes.items():
        if name not in TrainingConfig.__annotations__:
            raise unknown_name("setting", name, TrainingConfig.__annotations__)
        _check_type(name, value)
    return replace(config, **{name: _tuples(value) for name, value in changes.items()})


def _check_type(name: str, value: Any) -> None:
    annotation = str(TrainingConfig.__annotations__[name])
    if name == "rates":
        pairs = isinstance(value, list | tuple) and all(
            isinstance(p, list | tuple) and len(p) == 2 and all(map(_is_number, p)) for p in value
        )
        _check(name, value, pairs, "a list of [epoch, rate]")
    elif not annotation.startswith("Literal"):  # those are checked as choices
        types = [kind for part in annotation.split(" | ") for kind in _TYPES[part]]
        good = isinstance(value, tuple(types)) and (bool in types or not isinstance(value, bool))
        _check(name, value, good, annotation)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check(name: str, value: Any, good: bool, allowed: str) -> None:
    if not good:
        raise OptionError(f"{name} is {value!r}; it must be {allowed}.")


def _setting(setting: str) -> tuple[str, Any]:
    name, equals, text = setting.partition("=")
    if not equals:
        raise OptionError(f"{setting!r} is not a setting; write key=value, as in epochs=12.")
    name, text = name.strip(), text.strip()
    if text in ("none", "None"):
        return name, None
    try:
        return name, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return name, text  # a bare word is a string


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a TOML file: {error}.") from error


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value
