"""What is written about the methods: the documents say what the docstrings say."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import fields
from itertools import groupby
from typing import Any

from protorect.methods.method import Described, written
from protorect.methods.registry import METHODS, PICTURE_METHODS

HEAD = """\
# Methods

Made by `protorect methods --markdown`; do not edit. All run on the same episodes, all tasks of a
chunk at once but for `tft`, which needs pictures and trains a network for each task. Inductive
methods classify each query by itself; transductive ones look at all queries of a task, never at
their labels. Features are normalised unless it says otherwise. Options go behind the name,
`bd-cspn:z=4,rank=softmax`, or in Python:

    protorect.METHODS["bd-cspn"].with_options(z=4, rank="softmax")

A slow reading of each, one task and one sample at a time, is in `tests/reference`.

| method | kind | what it does |
|---|---|---|
"""


def about(method: Described) -> list[str]:
    """The paragraphs on the method: title, source, ..., and what it assumes."""
    text = inspect.getdoc(sys.modules[method.function.__module__]) or ""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def option_texts(options: Any) -> dict[str, str]:
    """What each option is, from the docstrings of its dataclass and of those it extends."""
    names = [field.name for field in fields(options)]
    texts: dict[str, str] = {}
    for kind in reversed(type(options).__mro__[:-1]):
        _, _, listed = inspect.cleandoc(kind.__doc__ or "").partition("----------\n")
        told = ""
        for line in listed.splitlines():
            if line in names:
                told, texts[line] = line, ""
            elif told:
                texts[told] = f"{texts[told]} {line.strip()}".strip()
    return texts


def method_text(method: Described, width: int = 100) -> str:
    """All on one method, for a terminal."""
    texts = option_texts(method.options)
    lines = [f"{method.name} ({method.family}): {method.summary}"]
    lines += ["", *_wrapped(about(method), width)]
    for name, text in texts.items():
        value = _shown(getattr(method.options, name))
        lines += textwrap.wrap(f"{name}={value}: {text}", width, subsequent_indent="    ")
    return "\n".join(lines)


def methods_page() -> str:
    """docs/methods.md."""
    everyone: list[Described] = [*METHODS.values(), *PICTURE_METHODS.values()]
    rows = "".join(f"| `{m.name}` | {m.family} | {m.summary} |\n" for m in everyone)
    families = groupby(everyone, key=lambda m: m.function)
    return HEAD + rows + "".join(_section(list(family)) for _, family in families)


def _section(methods: list[Described]) -> str:
    """One on methods that share a function and differ in their options."""
    names = ", ".join(f"`{method.name}`" for method in methods)
    options = methods[-1].options if len(methods) == 1 else type(methods[-1].options)()
    texts = option_texts(options)
    lines = [f"\n## {names}\n", *_wrapped(about(methods[0]), 100)]
    if texts:
        lines += ["| option | default | |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {_shown(getattr(options, name))} | {_cell(text)} |"
            for name, text in texts.items()
        ]
    return "\n".join(lines).rstrip() + "\n"


def _shown(value: Any) -> str:
    return "none" if value is None else written(value)


def _wrapped(paragraphs: Iterable[str], width: int) -> list[str]:
    return [line for text in paragraphs for line in (*textwrap.wrap(text, width), "")]


def _cell(text: str) -> str:
    """Text for a cell of a table, whose columns a bare stroke would part."""
    return text.replace("|", r"\|")
