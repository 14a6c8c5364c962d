"""What a method is: a function with a name, options and a description; and how it is registered."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from torch import Tensor, nn

from protorect.core.functional import Features
from protorect.core.unit_rows import UnitRows
from protorect.errors import OptionError, unknown_name

Family = Literal["inductive", "transductive"]
Function = Callable[..., Tensor]


@dataclass(frozen=True)
class BaseMethod:
    """A method on features (`Method`) or on pictures (`PictureMethod`)."""

    name: str  # with the options that differ from the defaults: "bd-cspn:z=4"
    function: Function  # scores the queries; it never sees their labels and keeps no state
    options: Any  # an instance of `Parameters`
    summary: str  # one line on what it does
    family: Family  # "inductive": each query on its own; "transductive": all of a task together
    changed: frozenset[str] = frozenset()  # the options that `with_options` has set

    def with_options(self, **changes: Any) -> Self:
        """The same method with other options, which its name lists."""
        known = [option.name for option in self.options.parameters()]
        if changes and not known:
            raise OptionError(f"{self.name} has no options, {next(iter(changes))!r} was given.")
        for option in changes:
            if option not in known:
                raise unknown_name(f"option of {self.name}", option, known)
        suffix = ",".join(f"{option}={format_value(value)}" for option, value in changes.items())
        separator = "," if ":" in self.name else ":"
        name = f"{self.name}{separator}{suffix}" if suffix else self.name
        options = replace(self.options, **changes)
        return replace(self, name=name, options=options, changed=self.changed | set(changes))


@dataclass(frozen=True)
class Method(BaseMethod):
    """A method that scores the queries of a batch of tasks from their features.

    Its function is (support, labels, query, ways, options) -> scores (tasks, n_query, ways).

    Examples
    --------
    >>> import torch, protorect
    >>> cspn = protorect.METHODS["cspn"]
    >>> isinstance(cspn, protorect.Method)
    True
    >>> support, labels = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.tensor([0, 1])
    >>> cspn(support, labels, torch.tensor([[[0.9, 0.1]]])).argmax(dim=-1).tolist()
    [[0]]
    """

    def __call__(self, support: Features, labels: Tensor, query: Features) -> Tensor:
        """Score the queries, (tasks, n_query, ways), higher is better.

        Parameters
        ----------
        support
            (tasks, n_support, dim)
        labels
            (tasks, n_support) or (n_support,), integers 0 .. ways - 1, each present.
        query
            (tasks, n_query, dim)
        """
        ways = int(labels.max()) + 1
        rows = query.rows if isinstance(query, UnitRows) else query
        if rows.shape[1] == 0:
            return UnitRows.of(rows).scale.new_empty(len(rows), 0, ways)
        return self.function(support, labels, query, ways, self.options)


@dataclass(frozen=True)
class PictureMethod(BaseMethod):
    """A method that fine-tunes a network on the pictures of one task.

    Its function is (network, support, labels, query, ways, options, at_once) -> scores
    (n_query, ways).
    """

    def __call__(
        self, network: nn.Module, support: Tensor, labels: Tensor, query: Tensor, at_once: int
    ) -> Tensor:
        """Score the queries, (n_query, ways); the network is not changed.

        Support and query are pictures (n, channels, height, width), labels (n_support,) integers
        0 .. ways - 1, each present. At most `at_once` pictures are in one forward pass.
        """
        ways = int(labels.max()) + 1
        return self.function(network, support, labels, query, ways, self.options, at_once)


METHODS: dict[str, Method] = {}
PICTURE_METHODS: dict[str, PictureMethod] = {}


def register(
    name: str, options: Any, family: Family, summary: str, *, on_pictures: bool = False
) -> Callable[[Function], Function]:
    """Add the decorated function to `METHODS`, or to `PICTURE_METHODS`, under this name."""

    def decorate(function: Function) -> Function:
        if on_pictures:
            PICTURE_METHODS[name] = PictureMethod(name, function, options, summary, family)
        else:
            METHODS[name] = Method(name, function, options, summary, family)
        return function

    return decorate


def format_value(value: Any) -> str:
    """The value of an option as it is written after a method's name."""
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else "given"
