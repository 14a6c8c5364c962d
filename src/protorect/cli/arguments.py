"""Options of the commands, from the descriptions of the library's parameters."""

import argparse
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

from protorect._utils.parameters import (
    EMBEDDING_PRECISIONS,
    Parameter,
    Parameters,
    format_value,
)


def add_parameters(
    parser: argparse._ActionsContainer, described: type[Parameters], *names: str
) -> None:
    """Add an option for each of these parameters, all if none is named.

    Its help, default and range come from the description. `given` has the values; an option for a
    tuple of numbers is repeated, once for each number.
    """
    for name in names or [one.name for one in described.parameters()]:
        parser.add_argument(
            f"--{name.replace('_', '-')}", action=_Store, described=described.find(name)
        )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how and where a network computes."""
    add = parser.add_argument
    choices = EMBEDDING_PRECISIONS
    add("--precision", default="auto", choices=choices, help="auto: the fastest without loss")
    add("--device", default="auto", help="a torch device; auto: a GPU if there is one, else cpu")


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add the options of the feature cache: `cache` is a folder, True for the user's, or False."""
    add = parser.add_mutually_exclusive_group().add_argument
    folder = "cache features here (your cache folder)"
    add("--cache", type=Path, metavar="FOLDER", default=True, help=folder)
    add("--no-cache", dest="cache", action="store_false", help="cache no features")


def given(options: argparse.Namespace, described: type[Parameters]) -> dict[str, Any]:
    """The values of the options that the user gave; the others have the library's defaults."""
    names = [one.name for one in described.parameters()]
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


def parameters_text(described: type[Parameters]) -> str:
    """All parameters with defaults, allowed values and meanings, for the end of a help."""
    width, indent = shutil.get_terminal_size().columns - 2, " " * 6
    return "\n".join(
        f"  {one.name}={format_value(one.default)}  ({one.constraint.allowed})\n"
        + textwrap.fill(one.description, width, initial_indent=indent, subsequent_indent=indent)
        for one in described.parameters()
    )


class _Store(argparse.Action):
    """Checks and stores the value of an option; absent from the namespace if it is not given.

    Raises OptionError, so that a bad value is one sentence as everywhere else.
    """

    def __init__(self, option_strings: list[str], dest: str, described: Parameter) -> None:
        item = described.constraint.item
        self.one = replace(
            described, name=option_strings[0], constraint=item or described.constraint
        )
        self.repeated = item is not None
        super().__init__(
            option_strings,
            described.name,
            default=argparse.SUPPRESS,
            metavar="NAME" if described.constraint.choices else "N",
            help=_help(described),
        )

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        value = self.one.parse(values)
        if value is not None:  # which is Python's, so that messages do not mention it
            value = self.one.constraint.without_none().validated(self.one.name, value)
        if self.repeated:
            value = (*getattr(namespace, self.dest, ()), value)
        setattr(namespace, self.dest, value)


def _help(one: Parameter) -> str:
    """Meaning, allowed values and default; the meaning says what happens without a default."""
    notes = [(one.constraint.item or one.constraint).without_none().allowed]
    if one.constraint.item:
        notes += ["repeat for several", f"default {' and '.join(map(str, one.default))}"]
    elif one.default is not None:
        notes.append(f"default {format_value(one.default)}")
    meaning = one.description[0].lower() + one.description[1:].removesuffix(".")
    return f"{meaning} ({'; '.join(notes)})".replace("%", "%%")
