"""Run a method on one block of tasks after another, each as a tensor of normalized features.

For methods that pass over the same samples many times; others use `UnitRows` without copying.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from protorect.core.unit_rows import UnitRows
from protorect.methods.interface import Solution, Task
from protorect.methods.rules import Rule

_MAX_BYTES = 32 * 2**20  # of a block
_CACHE_BYTES = 2**21  # per thread: the usual size of a core's inner cache


@dataclass(frozen=True, eq=False)
class Block:
    """Some tasks; the support comes first among the samples."""

    samples: Tensor  # (tasks, n_support + n_unlabeled, dim), of unit length; may be changed
    members: Tensor  # (tasks, ways, n_support), 1 where a sample belongs to a class, else 0
    prior: Tensor | None  # (tasks, ways, n_unlabeled), logits of the unlabeled samples
    previous: Rule | None  # to start from

    @property
    def n_support(self) -> int:
        """Number of support samples of a task."""
        return self.members.shape[-1]

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabeled samples of a task."""
        return self.samples.shape[1] - self.n_support


# Scores by class (tasks, ways, n_unlabeled), and a function that makes the rule for new samples.
BlockSolution = tuple[Tensor, Callable[[], Rule]]
BlockFunction = Callable[[Block, Any], BlockSolution]  # of a block and options


def blockwise(*, in_cache: bool = False) -> Callable[[BlockFunction], Callable[..., Solution]]:
    """Turn a function on one block of tasks into a method on any number of tasks.

    With `in_cache`, blocks fit the cores' caches: several times faster if each step reads all
    samples.
    """

    def decorate(function: BlockFunction) -> Callable[..., Solution]:
        @wraps(function)
        @torch.no_grad()
        def method(task: Task, options: Any) -> Solution:
            max_bytes = torch.get_num_threads() * _CACHE_BYTES if in_cache else _MAX_BYTES
            scores, rules = [], []
            for block in blocks(task, max_bytes):
                of_block, make_rule = function(block, options)
                scores.append(of_block)
                if task.needs_rule:
                    rules.append(make_rule())  # now: it may need the samples of the block
            return Solution.by_class(torch.cat(scores), lambda: Rule.concatenate(rules))

        return method

    return decorate


def blocks(task: Task, max_bytes: int) -> Iterator[Block]:
    """As many tasks as fit into `max_bytes`, at least one, and then the next."""
    support, unlabeled = task.unit_rows()
    members, prior = task.members_by_class(), task.prior_by_class()
    tasks, ways, dim = task.shape
    n = support.n + unlabeled.n
    # The samples, and room for four arrays each of (ways, dim) and (ways, n)
    task_bytes = (n * dim + 4 * ways * (dim + n)) * support.dtype.itemsize
    size = max(1, max_bytes // task_bytes)
    if size > torch.get_num_threads():
        size -= size % torch.get_num_threads()  # the same number of tasks for each core
    for start in range(0, tasks, size):
        part = slice(start, start + size)
        yield Block(
            torch.cat([_materialize(rows, part) for rows in (support, unlabeled)], dim=1),
            members[part],
            None if prior is None else prior[part],
            None if task.previous is None else task.previous.part(part),
        )


def class_mean_weights(members: Tensor) -> Tensor:
    """Weight of each support sample in the mean of its class, (tasks, ways, n_support)."""
    return members / members.sum(dim=-1, keepdim=True)


def _materialize(samples: UnitRows, part: slice) -> Tensor:
    shift, gain = (
        None if field is None else field[part] for field in (samples.shift, samples.gain)
    )
    return UnitRows(samples.rows[part], samples.scale[part], shift, gain).materialize()
