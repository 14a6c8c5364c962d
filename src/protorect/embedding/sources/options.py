"""Options of networks, which follow the name of their source: NAME:option=value,..."""

import os
from typing import ClassVar, TypeVar

from protorect._utils.parameters import Parameters, parameter


class NetworkOptions(Parameters):
    """Options of every network."""

    kind: ClassVar[str] = "option of a network"

    mirror: bool = parameter(
        False,
        "Average the features of a picture and of its mirror image, which takes twice the time.",
    )


Options = TypeVar("Options", bound=NetworkOptions)


def parse_options(spelling: str, described: type[Options]) -> tuple[str, Options]:
    """A name and its options; a path may have colons."""
    name, colon, items = spelling.rpartition(":")
    if not colon or "=" not in items or os.path.exists(spelling):
        name, items = spelling, ""
    return name, described(**described.parse(filter(None, items.split(","))))
