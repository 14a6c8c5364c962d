"""Methods of the user: any function of support, labels and queries beside the registered methods.

In Python a method is the function itself, on the command line "FILE.py:function" or
"package.module:function":

    def scores(support, labels, query, ways):
        members = torch.nn.functional.one_hot(labels, ways).float()
        return query @ support.mT @ members
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters
from protorect.core.functional import Features, membership, predictions
from protorect.core.unit_rows import UnitRows
from protorect.errors import DataError, OptionError, unknown_name
from protorect.methods import (
    METHODS,
    PICTURE_METHODS,
    Method,
    PictureMethod,
    Solution,
    Task,
    chosen_methods,
    chosen_with_pictures,
)
from protorect.methods.interface import assignment_rule

Function = Callable[[Tensor, Tensor, Tensor, int], Tensor]
Spec = str | Method | PictureMethod | Function


@dataclass(frozen=True)
class OwnMethod(Method):
    """A function of the user as a method.

    It gets the raw features of a batch of tasks as float32: support (tasks, n, dim), labels
    (tasks, n) of integers 0 .. ways - 1, query (tasks, m, dim), and the number of ways. It returns
    scores (tasks, m, ways), higher is better.
    """

    def solve(self, task: Task) -> Solution:
        """Score the queries, check the scores, and assign each query to its class."""
        ways = task.ways
        # Copies that the function may change, and through which it may take gradients.
        with torch.inference_mode(False), torch.enable_grad():
            own_support, own_query = _float32(task.support), _float32(task.unlabeled)
            own_labels = task.labels.expand(own_support.shape[:2]).clone()
            code = getattr(self.function, "__code__", None)
            with _failures(f"{self.name} failed", getattr(code, "co_filename", None)):
                scores = self.function(own_support, own_labels, own_query, ways)
        if not isinstance(scores, Tensor) or scores.is_complex():
            given = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
            raise DataError(f"{self.name} must return a tensor of real scores, got {given}.")
        expected = (*own_query.shape[:2], ways)
        if tuple(scores.shape) != expected:
            raise DataError(
                f"{self.name} must return scores (tasks, n_query, ways), here {expected}; got "
                f"shape {tuple(scores.shape)}."
            )
        if scores.isnan().any():
            raise DataError(f"{self.name} returned {int(scores.isnan().sum())} scores of NaN.")
        scores = scores.detach().to(own_query)
        predicted = membership(predictions(scores), ways)
        return Solution(scores, lambda: assignment_rule(task, predicted))


def resolve_methods(
    specs: Spec | Iterable[Spec], with_pictures: bool = False
) -> list[Method | PictureMethod]:
    """The methods of these names, functions and methods, each once.

    "all" is every registered method: with those on pictures, or without. With pictures, at least
    one must need them.
    """
    single = isinstance(specs, str) or not isinstance(specs, Iterable)
    listed: list[Any] = [specs] if single else list(cast("Iterable[Spec]", specs))
    if not listed:
        raise OptionError("no method given.")
    registered = chosen_with_pictures if with_pictures else chosen_methods
    methods: dict[str, Method | PictureMethod] = {}
    for spec in listed:
        if isinstance(spec, PictureMethod) and not with_pictures:
            spec = spec.name  # the registry explains what is missing
        found: Iterable[Method | PictureMethod]
        if isinstance(spec, Method | PictureMethod):
            found = [spec]
        elif _is_own(spec):
            found = [_own_method(spec)]
        else:
            found = registered([spec])
        for one in found:
            if methods.setdefault(one.name, one) != one:
                raise OptionError(f"two different methods are called {one.name}; rename one.")
    if with_pictures and not any(isinstance(one, PictureMethod) for one in methods.values()):
        names = ", ".join(PICTURE_METHODS)
        raise OptionError(f"network and pictures are for {names}, which is not among the methods.")
    return list(methods.values())


def _is_own(spec: Any) -> bool:
    """Whether this is a function, or the name of one in a file or a module."""
    if not isinstance(spec, str):
        return callable(spec)
    source, _, function = spec.rpartition(":")
    in_module = all(part.isidentifier() for part in (*source.split("."), function))
    registered = source in METHODS or source in PICTURE_METHODS
    return spec.endswith(".py") or source.endswith(".py") or (in_module and not registered)


def _own_method(spec: str | Function) -> OwnMethod:
    if isinstance(spec, str):
        function, name = _load_function(spec), spec
    else:
        function, name = spec, getattr(spec, "__name__", type(spec).__name__)
    described = name, function, Parameters(), "a function of the user"
    return OwnMethod(*described, "transductive", has_rule=False)


def _load_function(spec: str) -> Function:
    """The function that is spelled "FILE.py:function" or "package.module:function"."""
    if spec.endswith(".py"):
        raise OptionError(f"{spec} is a file; name the function in it, as in {spec}:scores.")
    source, _, name = spec.rpartition(":")
    is_file = source.endswith(".py")
    if is_file and not Path(source).is_file():
        raise DataError(f"there is no file {source}.")
    with _failures(f"{source} cannot be imported", source), _importable(Path(source).parent):
        module = _import_file(Path(source)) if is_file else import_module(source)
        function: Any = getattr(module, name, None)  # which a package may import only now
    if not callable(function):
        known = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise unknown_name(f"function of {source}", name, known)
    return cast("Function", function)


def _import_file(path: Path) -> ModuleType:
    name = f"protorect_own_method_{path.stem}"
    description = spec_from_file_location(name, path)
    assert description is not None
    assert description.loader is not None
    module = sys.modules[name] = module_from_spec(description)  # dataclasses look it up there
    description.loader.exec_module(module)
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules of a folder be imported, after all others."""
    entry = str(folder.resolve())
    added = [] if entry in sys.path else [entry]
    sys.path += added
    try:
        yield
    finally:
        for one in added:
            sys.path.remove(one)


@contextmanager
def _failures(what: str, file: str | None) -> Iterator[None]:
    """Turn any exception into one sentence, with the last line of `file` that it passed."""
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__) if file else []
        own = [one for one in frames if Path(one.filename).resolve() == Path(file or "").resolve()]
        line = f" at line {own[-1].lineno}" if own else ""
        reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
        raise DataError(f"{what}{line}: {reason}.") from error


def _float32(features: Features) -> Tensor:
    rows = features.rows if isinstance(features, UnitRows) else features
    return rows.to(torch.float32, copy=True)
