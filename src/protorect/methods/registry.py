"""Methods by name, and options as they are written after a name: "bd-cspn:z=4,rank=softmax"."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from protorect.errors import OptionError, unknown_name
from protorect.methods.method import METHODS, PICTURE_METHODS, BaseMethod, Method, PictureMethod

# The modules register their methods, in the order in which tables and documents list them.
for _module in (
    "bd_cspn",
    "bd_cspn_plus",
    "protonet",
    "simpleshot",
    "matching",
    "ridge",
    "logistic",
    "soft_kmeans",
    "label_propagation",
    "laplacian_shot",
    "tft_head",
    "tim",
    "tim_adm",
    "alpha_tim",
    "pt_map",
    "tft",
):
    import_module(f"protorect.methods.{_module}")

ALL = "all"
PAPER = ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-cspn-classes")


def chosen_methods(specs: str | Method | Iterable[str | Method]) -> list[Method]:
    """The methods of these specs, each once; "all" is every method on features."""
    return [_on_features(one) for one in _parse_all(specs, METHODS)]


def chosen_with_pictures(specs: Iterable[str]) -> list[Method | PictureMethod]:
    """As `chosen_methods`, with the methods on pictures."""
    return _parse_all(specs, METHODS | PICTURE_METHODS)


def method(spec: str | Method) -> Method:
    """The method of this name, with options if any: "bd-cspn" or "bd-cspn:z=4,rank=softmax".

    Examples
    --------
    >>> import protorect
    >>> protorect.method("bd-cspn:z=4").options.z
    4
    """
    return _on_features(_parse(spec))


get_method = method


def _on_features(chosen: Method | PictureMethod) -> Method:
    if isinstance(chosen, PictureMethod):
        raise OptionError(
            f"{chosen.name} fine-tunes the network on pictures, so features alone do not do. Give "
            "the run and the packed pictures that made them: `protorect evaluate FEATURES "
            f"--method {chosen.name} --network RUN --pictures PACKED`."
        )
    return chosen


def _parse_all(
    specs: str | Method | Iterable[str | Method], everything: Iterable[str]
) -> list[Method | PictureMethod]:
    listed = [specs] if isinstance(specs, str | Method) else list(specs)
    named = [name for one in listed for name in (everything if one == ALL else [one])]
    return list({one.name: one for one in map(_parse, named)}.values())


def _parse(spec: str | Method) -> Method | PictureMethod:
    if isinstance(spec, Method):
        return spec
    known = METHODS | PICTURE_METHODS
    if not isinstance(spec, str):
        raise OptionError(f"{spec!r} is no method; give the name of one of {sorted(known)}.")
    name, _, listed = spec.strip().partition(":")
    if name not in known:
        raise unknown_name("method", name, known)
    chosen = known[name]
    options = [_parse_option(chosen, item) for item in listed.split(",") if item]
    changes = dict(options)
    if len(changes) < len(options):
        raise OptionError(f"{spec}: an option is given twice.")
    return chosen.with_options(**changes)


def _parse_option(chosen: BaseMethod, item: str) -> tuple[str, Any]:
    name, equals, text = (part.strip() for part in item.partition("="))
    if not equals:
        raise OptionError(f"{item!r} is not an option; write name=value, as in bd-cspn:z=4.")
    option = chosen.option(name)
    return option.name, option.parse(text)
