"""The training recipe: a frozen dataclass, from defaults, a TOML file and `key=value` settings."""

import inspect
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

from protorect._utils.files import read_errors
from protorect._utils.parameters import PRECISIONS, check_choice
from protorect.errors import DataError, OptionError, unknown_name


@dataclass(frozen=True)
class TrainingConfig:
    """The training recipe; the defaults are the paper's."""

    backbone: str = "conv64"  # one of `protorect.backbones.BACKBONES`
    seed: int = 0  # of the initial weights, the order of the pictures and their augmentation
    epochs: int = 60
    batch_size: int = 256
    steps_per_epoch: int | None = None  # of batch_size; None: one pass over the pictures
    # (epoch, learning rate) points; between them the rate is kept ("hold") or interpolated for
    # every step. A one-cycle schedule is three points and "linear".
    rates: tuple[tuple[float, float], ...] = ((0, 0.1), (10, 0.01), (20, 0.001), (40, 0.0001))
    between_rates: Literal["hold", "linear", "cosine"] = "hold"
    # (epoch, side) points: from each epoch on, training pictures are reduced to this side, which
    # takes less time; empty: always full size. The last side must be that of the data set.
    sizes: tuple[tuple[int, int], ...] = ()
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    label_smoothing: float = 0.0
    crop_padding: int | None = None  # pixels of padding for random crops; None: the data set's
    flip: bool | None = None  # random mirroring; None: the data set's
    smallest_scale: float = 1.0  # below 1, random crops show this fraction of the side or more
    colour: float = 0.0  # largest relative change of brightness, contrast and saturation
    precision: Literal["auto", "bfloat16", "float32"] = "auto"  # "auto": bfloat16 where it is fast
    channels_last: bool = True  # memory layout
    compile: bool = False  # whether torch compiles the network first
    # 5-way 5-shot episodes of the validation classes after each epoch (smaller ones where there
    # are too few pictures). They choose the best epoch; without such classes it is the last one.
    validation_episodes: int = 300

    def __post_init__(self) -> None:
        for least, names in _MINIMUM.items():
            for name in names:
                value = getattr(self, name)
                _check(name, value, value is None or value >= least, f"{least} or more")
        for name in ("momentum", "label_smoothing", "colour"):
            _check(name, getattr(self, name), getattr(self, name) < 1, "below 1")
        _check("smallest_scale", self.smallest_scale, 0 < self.smallest_scale <= 1, "in 0 .. 1")
        check_choice("between_rates", self.between_rates, ("hold", "linear", "cosine"))
        check_choice("precision", self.precision, PRECISIONS)
        good = _in_order(self.rates) and all(rate >= 0 for _, rate in self.rates)
        _check("rates", self.rates, good, "points (epoch, rate) from epoch 0 on, in order")
        good = not self.sizes or _in_order(self.sizes)
        _check("sizes", self.sizes, good, "points (epoch, side) from epoch 0 on, in order")


_MINIMUM = {
    0: ("seed", "momentum", "weight_decay", "label_smoothing", "crop_padding", "colour"),
    1: ("epochs", "steps_per_epoch", "validation_episodes"),
    2: ("batch_size",),
}
_TYPES = get_type_hints(TrainingConfig)


def read_config(
    path: str | os.PathLike[str] | None = None, settings: Iterable[str] = ()
) -> TrainingConfig:
    """Read a recipe: the defaults, a TOML file over them, settings such as "epochs=12" last."""
    config = TrainingConfig()
    if path is not None:
        config = updated(config, _toml(Path(path)))
    return updated(config, dict(_setting(setting) for setting in settings))


def updated(config: TrainingConfig, changes: Mapping[str, Any]) -> TrainingConfig:
    """Return the configuration with these values, after checking their names and types."""
    for name, value in changes.items():
        if name not in _TYPES:
            raise unknown_name("setting", name, _TYPES)
        _check_type(name, value)
    return replace(config, **{name: _tuples(value) for name, value in changes.items()})


def _check_type(name: str, value: Any) -> None:
    kind = _TYPES[name]
    if name == "rates":
        _check(name, value, _are_pairs(value, int | float), "a list of [epoch, rate]")
    elif name == "sizes":
        _check(name, value, _are_pairs(value, int), "a list of [epoch, side], whole numbers")
    elif kind is float:
        _check(name, value, _is_number(value), "float")
    elif get_origin(kind) is not Literal:  # those are checked as choices
        boolean = kind in (bool, bool | None)  # elsewhere True is not taken for 1
        good = isinstance(value, kind) and (boolean or not isinstance(value, bool))
        _check(name, value, good, inspect.formatannotation(kind))


def _is_number(value: Any, kind: Any = int | float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _are_pairs(value: Any, kind: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(_is_number(n, kind) for n in pair)
        for pair in value
    )


def _in_order(points: tuple[tuple[float, float], ...]) -> bool:
    epochs = [epoch for epoch, _ in points]
    return epochs[:1] == [0] and epochs == sorted(epochs)


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
        with read_errors(path):
            return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a TOML file: {error}.") from error


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value
