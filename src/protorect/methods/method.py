"""What a method is: a function with a name, options and a description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

from torch import Tensor, nn

from protorect.core.functional import Features
from protorect.core.unit_rows import UnitRows
from protorect.errors import OptionError, unknown_name

Family = Literal["inductive", "transductive"]


@dataclass(frozen=True)
class Described:
    """What a method on features and one on pictures have in common.

    Parameters
    ----------
    name
        What it is called, options that differ from the defaults included: "bd-cspn:z=4".
    function
        What classifies. It never sees the queries' labels and keeps nothing between calls.
    options
        A frozen dataclass of its choices.
    summary
        One line on what it does.
    family
        "inductive": each query is classified by itself. "transductive": all queries of a task
        together.
    changed
        The options that `with_options` has set.
    """

    name: str
    function: Callable[..., Tensor]
    options: Any
    summary: str
    family: Family
    changed: frozenset[str] = frozenset()

    def with_options(self, **changes: Any) -> Self:
        """The same method with other options; its name says which."""
        known = {field.name for field in fields(self.options)}
        if changes and not known:
            raise OptionError(f"{self.name} has no options, {next(iter(changes))!r} was given.")
        for option in changes:
            if option not in known:
                raise unknown_name(f"option of {self.name}", option, known)
        suffix = ",".join(f"{option}={written(value)}" for option, value in changes.items())
        between = "," if ":" in self.name else ":"
        name = f"{self.name}{between}{suffix}" if suffix else self.name
        options = replace(self.options, **changes)
        return replace(self, name=name, options=options, changed=self.changed | set(changes))


@dataclass(frozen=True)
class Method(Described):
    """A method that classifies the queries of a batch of tasks by their features.

    Its function is (support, labels, query, ways, options) -> scores (tasks, n_query, ways).
    """

    def __call__(self, support: Features, labels: Tensor, query: Features) -> Tensor:
        """Score the queries, (tasks, n_query, ways); without queries there is nothing to do.

        Parameters
        ----------
        support
            (tasks, n_support, dim)
        labels
            (tasks, n_support) or (n_support,), whole numbers 0 .. ways - 1, each present.
        query
            (tasks, n_query, dim)
        """
        ways = int(labels.max()) + 1
        rows = query.rows if isinstance(query, UnitRows) else query
        if rows.shape[1] == 0:
            return UnitRows.of(rows).scale.new_empty(len(rows), 0, ways)
        return self.function(support, labels, query, ways, self.options)


@dataclass(frozen=True)
class PictureMethod(Described):
    """A method that looks at the pictures of one task with a network of its own.

    Its function is (network, support, labels, query, ways, options, at_once) -> scores
    (n_query, ways).
    """

    def __call__(
        self, network: nn.Module, support: Tensor, labels: Tensor, query: Tensor, at_once: int
    ) -> Tensor:
        """Score the queries, (n_query, ways); the network is left as it is.

        Parameters
        ----------
        network
            (n, channels, height, width) -> (n, dim)
        support, query
            (n_support, channels, height, width) and (n_query, channels, height, width)
        labels
            (n_support,), whole numbers 0 .. ways - 1, each present.
        at_once
            How many pictures go through the network together at most.
        """
        ways = int(labels.max()) + 1
        return self.function(network, support, labels, query, ways, self.options, at_once)


def written(value: Any) -> str:
    """The value of an option as it is written behind a method's name."""
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else "given"
