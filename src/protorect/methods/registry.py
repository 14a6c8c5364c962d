"""The methods that can be asked for by name, and how their options are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from torch import Tensor

from protorect.errors import OptionError, unknown_name
from protorect.functional import Features
from protorect.methods import rectification


@dataclass(frozen=True)
class Method:
    """A method that classifies the queries of a batch of tasks.

    Parameters
    ----------
    name
        What it is called, options that differ from the defaults included: "bd-cspn:z=4".
    function
        (support, labels, query, ways, options) -> scores (tasks, n_query, ways). It never sees
        the queries' labels and keeps nothing between calls.
    options
        A frozen dataclass of its choices.
    summary
        One line on what it does.
    """

    name: str
    function: Callable[[Features, Tensor, Features, int, Any], Tensor]
    options: Any
    summary: str

    def __call__(self, support: Features, labels: Tensor, query: Features) -> Tensor:
        """Score the queries, (tasks, n_query, ways).

        Parameters
        ----------
        support
            (tasks, n_support, dim)
        labels
            (tasks, n_support) or (n_support,), whole numbers 0 .. ways - 1, each present.
        query
            (tasks, n_query, dim)
        """
        return self.function(support, labels, query, int(labels.max()) + 1, self.options)

    def with_options(self, **changes: Any) -> Method:
        """The same method with other options; its name says which."""
        known = {field.name for field in fields(self.options)}
        for option in changes:
            if option not in known:
                raise unknown_name(f"option of {self.name}", option, known)
        suffix = ",".join(f"{option}={_written(value)}" for option, value in changes.items())
        name = f"{self.name}:{suffix}" if suffix else self.name
        return replace(self, name=name, options=replace(self.options, **changes))


METHODS = {
    name: Method(name, rectification.rectification, options, summary)
    for name, options, summary in [
        ("cspn", rectification.CSPN, "nearest basic prototype by cosine"),
        ("bd-c", rectification.BD_C, "queries shifted to the support (cross-class bias)"),
        ("bd-i", rectification.BD_I, "confident queries join the prototypes (intra-class bias)"),
        ("bd-cspn", rectification.BD_CSPN, "both corrections, weights of eq. (6) as printed"),
        (
            "bd-cspn-classes",
            rectification.BD_CSPN_CLASSES,
            "both corrections, weights from each sample's softmax over the classes",
        ),
    ]
}


def method(spelling: str | Method) -> Method:
    """The method of this name, with options if any: "bd-cspn" or "bd-cspn:z=4,rank=softmax"."""
    if isinstance(spelling, Method):
        return spelling
    if not isinstance(spelling, str):
        raise OptionError(f"{spelling!r} is no method; give the name of one of {sorted(METHODS)}.")
    name, _, written = spelling.strip().partition(":")
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    chosen = METHODS[name]
    options = [_option(chosen, item) for item in written.split(",") if item]
    changes = dict(options)
    if len(changes) < len(options):
        raise OptionError(f"{spelling}: an option is given twice.")
    return chosen.with_options(**changes)


def _option(chosen: Method, item: str) -> tuple[str, Any]:
    name, equals, written = item.partition("=")
    name, written = name.strip(), written.strip()
    if not equals:
        raise OptionError(f"{item!r} is not an option; write name=value, as in {chosen.name}:z=4.")
    default = getattr(chosen.options, name, None)
    return name, _parsed(name, written, default)


def _parsed(name: str, written: str, default: Any) -> Any:
    """The value in the type of its default."""
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False, "yes": True, "no": False}[written.lower()]
        if isinstance(default, int):
            return None if written in ("all", "none") else int(written)
        if isinstance(default, float):
            return float(written)
    except (ValueError, KeyError):
        kind = {bool: "true or false", int: "a whole number or all", float: "a number"}
        raise OptionError(f"{name}={written}: {kind[type(default)]} is wanted.") from None
    return written


def _written(value: Any) -> str:
    return "all" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
