"""HTML templates: everything is escaped, and a name that is not given is an error."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates_of(room: str) -> Environment:
    """The templates that lie in a room of the package."""
    return Environment(
        loader=PackageLoader("protorect", room),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
