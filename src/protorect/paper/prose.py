"""The hand-written texts of the page and the documents, from `prose.md`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


def prose(name: str, **values: Any) -> str:
    """A text by the name of its heading, with values filled in."""
    return _texts()[name].format(**values)


@cache
def _texts() -> dict[str, str]:
    text = files("protorect.paper").joinpath("prose.md").read_text("utf-8")
    parts = (part.partition("\n") for part in text.split("\n## ")[1:])
    return {name: " ".join(body.split()) for name, _, body in parts}
