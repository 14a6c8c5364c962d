"""What a method is: a function with a name, options and a description; and how it is registered."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from torch import Tensor, nn

from protorect._utils.parameters import Parameter
from protorect.core.functional import Features
from protorect.errors import OptionError, unknown_name
from protorect.methods.interface import Fitted, Solution, Task
from protorect.methods.rules import Rule

Family = Literal["inductive", "transductive"]
Function = Callable[..., Any]


@dataclass(frozen=True)
class BaseMethod:
    """A method on features (`Method`) or on pictures (`PictureMethod`)."""

    name: str  # with the options that `with_options` has set: "bd-cspn:z=4"
    function: Function  # what it computes; it sees no labels but the support's and keeps no state
    options: Any  # an instance of `Parameters`
    summary: str  # one line on what it does
    family: Family  # "inductive": each query on its own; "transductive": all of a task together
    tuned_on: str = "values of its authors"  # what the defaults of its options were chosen on
    changed: tuple[str, ...] = ()  # the options that `with_options` has set, in that order

    def with_options(self, **changes: Any) -> Self:
        """The same method with other options, which its name lists once each.

        Earlier names of options are accepted.
        """
        given, changes = changes, {self.option(name).name: changes[name] for name in changes}
        if len(changes) < len(given):
            raise OptionError(f"{self.name}: of {', '.join(given)} one option is given twice.")
        if not changes:
            return self
        options = replace(self.options, **changes)
        changed = tuple(dict.fromkeys([*self.changed, *changes]))
        suffix = ",".join(f"{one}={format_value(getattr(options, one))}" for one in changed)
        name = f"{self.name.partition(':')[0]}:{suffix}"
        return replace(self, name=name, options=options, changed=changed)

    def option(self, name: str) -> Parameter:
        """The option of this name, or of this earlier name."""
        known: dict[str, Parameter] = {one.name: one for one in self.options.parameters()}
        if not known:
            raise OptionError(f"{self.name} has no options, {name!r} was given.")
        present = self.options.canonical(name)
        if present not in known:
            raise unknown_name(f"option of {self.name}", name, known)
        return known[present]


@dataclass(frozen=True)
class Method(BaseMethod):
    """A method on the features of a batch of tasks.

    Its function is (task, options) -> `Solution`; or it returns a `Rule`, which then also scores
    the unlabeled samples.

    Examples
    --------
    >>> import torch, protorect
    >>> cspn = protorect.METHODS["cspn"]
    >>> isinstance(cspn, protorect.Method)
    True
    >>> support, labels = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.tensor([0, 1])
    >>> cspn(support, labels, torch.tensor([[[0.9, 0.1]]])).argmax(dim=-1).tolist()
    [[0]]
    >>> fitted = cspn.fit(support, labels)
    >>> fitted.scores(torch.tensor([[[0.2, 0.7], [0.6, 0.1]]])).argmax(dim=-1).tolist()
    [[1, 0]]
    """

    has_rule: bool = True  # else new samples are scored by the prototypes of its own assignment
    uses_prior: bool = False
    uses_previous: bool = False

    def fit(
        self,
        support: Features,
        labels: Tensor,
        unlabeled: Features | None = None,
        *,
        prior: Tensor | None = None,
        previous: Fitted | None = None,
    ) -> Fitted:
        """Fit the method to a batch of tasks.

        Parameters
        ----------
        support
            (tasks, n_support, dim)
        labels
            (tasks, n_support) or (n_support,), integers 0 .. ways - 1, each present.
        unlabeled
            (tasks, n_unlabeled, dim); with None or without rows, the support alone counts. The
            support is converted to the floating type of these samples.
        prior
            (tasks, n_unlabeled, ways), what is known beforehand of the unlabeled samples, as
            logits: they are added to those of the method. Used if `uses_prior`.
        previous
            This method fitted to nearly the same tasks, to start from. Used if `uses_previous`.
        """
        task = Task.of(support, labels, unlabeled, prior, previous)
        if previous is not None:
            self._check_previous(previous, task)
        return Fitted(self.name, task, self.solve(task))

    def __call__(self, support: Features, labels: Tensor, query: Features) -> Tensor:
        """The scores of the queries, (tasks, n_query, ways): `fit(...).scores(query)`.

        No rule for new samples is made, so that it is faster.
        """
        return self.solve(Task.of(support, labels, query, needs_rule=False)).scores

    def solve(self, task: Task) -> Solution:
        """What `fit` computes."""
        result = self.function(task, self.options)
        if isinstance(result, Rule):
            return Solution(result.scores(task.unlabeled), lambda: result)
        solution: Solution = result
        return solution

    def _check_previous(self, previous: Fitted, task: Task) -> None:
        if previous.method != self.name:
            raise OptionError(
                f"previous was fitted by {previous.method}, not by {self.name}; leave it out."
            )
        before = tuple(previous.rule.sizes[axis] for axis in ("tasks", "ways", "dim"))
        if before != task.shape:
            raise OptionError(
                f"previous was fitted to (tasks, classes, dimensions) = {before}, this task has "
                f"{task.shape}; leave it out."
            )


@dataclass(frozen=True)
class PictureMethod(BaseMethod):
    """A method that fine-tunes a network on the pictures of one task.

    Its function is (network, support, labels, query, ways, options, batch_size) -> scores
    (n_query, ways).
    """

    @property
    def on_logits(self) -> bool:
        """Whether it takes a network that ends in the rectified logits of the base classes."""
        return getattr(self.options, "layer", None) == "logits"

    def __call__(
        self, network: nn.Module, support: Tensor, labels: Tensor, query: Tensor, batch_size: int
    ) -> Tensor:
        """Score the queries, (n_query, ways); the network is not changed.

        Support and query are pictures (n, channels, height, width), labels (n_support,) integers
        0 .. ways - 1, each present. At most `batch_size` pictures are in one forward pass.
        """
        ways = int(labels.max()) + 1
        scores: Tensor = self.function(
            network, support, labels, query, ways, self.options, batch_size
        )
        return scores


METHODS: dict[str, Method] = {}
PICTURE_METHODS: dict[str, PictureMethod] = {}


def register(
    name: str,
    options: Any,
    family: Family,
    summary: str,
    *,
    has_rule: bool = True,
    uses_prior: bool = False,
    uses_previous: bool = False,
    on_pictures: bool = False,
    tuned_on: str = BaseMethod.tuned_on,
) -> Callable[[Function], Function]:
    """Add the decorated function to `METHODS`, or to `PICTURE_METHODS`, under this name."""

    def decorate(function: Function) -> Function:
        described = name, function, options, summary, family, tuned_on
        if on_pictures:
            PICTURE_METHODS[name] = PictureMethod(*described)
        else:
            METHODS[name] = Method(
                *described, has_rule=has_rule, uses_prior=uses_prior, uses_previous=uses_previous
            )
        return function

    return decorate


def format_value(value: Any) -> str:
    """The value of an option as it is written after a method's name."""
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else "given"
