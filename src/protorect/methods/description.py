"""Descriptions of the methods for the terminal and docs/methods.md."""

import inspect
import sys
import textwrap
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from protorect.methods.method import (
    METHODS,
    PICTURE_METHODS,
    BaseMethod,
    Method,
    format_value,
)

_WIDTH = 100  # characters of a line
HEAD = """\
# Methods

Made by `protorect methods --markdown`; do not edit. All methods run on the same episodes, in
batches of tasks except for `tft`, which needs pictures and fine-tunes a network for each task.
Inductive methods classify each query independently; transductive ones use all queries of a task,
never their labels. Features are normalized unless stated otherwise. Options follow the name,
`bd-cspn:z=4,rank=softmax`, or in Python:

    protorect.METHODS["bd-cspn"].with_options(z=4, rank="softmax")

A method is fitted to a batch of tasks, and then scores samples (tasks, n, dim):

    fitted = protorect.METHODS["bd-cspn"].fit(support, labels, unlabeled)
    fitted.scores(unlabeled)     # (tasks, n, ways), higher is better: the answer for all together
    fitted.scores(new_samples)   # each on its own, by `fitted.rule`

`fit` takes logits of the unlabeled samples that are known beforehand (`prior=`), and an earlier fit
to start from (`previous=`). Methods that do not use them ignore them. Without unlabeled samples, a
method is fitted to the support alone.

`tests/reference` has a slow reference implementation of each method.

| method | kind | what it does | rule for new samples | prior | previous |
|---|---|---|---|---|---|
"""

OWN_RULE = (
    "It has a rule for new samples. Applied to the unlabeled samples, the rule gives their scores "
    "again, but for the prior and for a constant per sample."
)
NO_RULE = (
    "It has no rule for new samples. They are compared with the means of the support and of the "
    "unlabeled samples that it assigned to each class, and their scores have another scale than "
    "those of the unlabeled samples."
)


def about(method: BaseMethod) -> list[str]:
    """Paragraphs of the method's module docstring: title, source, ..., assumptions."""
    text = inspect.getdoc(sys.modules[method.function.__module__]) or ""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def method_text(method: BaseMethod) -> str:
    """Full description of one method, for a terminal."""
    lines = [f"{method.name} ({method.family}): {method.summary}"]
    lines += ["", *_wrap([*about(method), *_interface(method)])]
    for option in method.options.parameters():
        value = _format_default(getattr(method.options, option.name))
        text = f"{option.name}={value}: {option.description}"
        lines += textwrap.wrap(text, _WIDTH, subsequent_indent="    ")
    return "\n".join(lines)


def methods_page() -> str:
    """The text of docs/methods.md."""
    methods: list[BaseMethod] = [*METHODS.values(), *PICTURE_METHODS.values()]
    rows = "".join(
        f"| `{m.name}` | {m.family} | {m.summary} | {' | '.join(_flags(m))} |\n" for m in methods
    )
    groups = groupby(methods, key=lambda m: m.function)
    return HEAD + rows + "".join(_section(list(group)) for _, group in groups)


def _section(methods: list[BaseMethod]) -> str:
    """The section on methods that share a function and differ in their options."""
    names = ", ".join(f"`{method.name}`" for method in methods)
    lines = [f"\n## {names}\n", *_wrap([*about(methods[0]), *_interface(methods[0])])]
    options = methods[0].options.parameters()
    if options:
        lines += ["| option | default | |", "|---|---|---|"]
    for option in options:
        cell = option.description.replace("|", r"\|")  # a bare bar separates cells
        lines.append(f"| `{option.name}` | {_format_default(option.default)} | {cell} |")
    return "\n".join(lines).rstrip() + "\n"


def _flags(method: BaseMethod) -> list[str]:
    """Whether it has a rule for new samples, uses a prior, uses an earlier fit."""
    if not isinstance(method, Method):
        return ["", "", ""]
    flags = method.has_rule, method.uses_prior, method.uses_previous
    return ["yes" if flag else "no" for flag in flags]


def _interface(method: BaseMethod) -> list[str]:
    """The paragraph on new samples, prior and earlier fit."""
    if not isinstance(method, Method):
        return []
    ignored = [] if method.uses_prior else ["`prior`"]
    ignored += [] if method.uses_previous else ["`previous`"]
    text = OWN_RULE if method.has_rule else NO_RULE
    return [f"{text} It ignores {' and '.join(ignored)}." if ignored else text]


def _format_default(value: Any) -> str:
    return "none" if value is None else format_value(value)


def _wrap(paragraphs: Iterable[str]) -> list[str]:
    wrapper = textwrap.TextWrapper(_WIDTH, break_on_hyphens=False)
    return [line for text in paragraphs for line in (*wrapper.wrap(text), "")]
