"""Run a method on one block of tasks after another, each as a tensor of normalized features.

For methods that pass over the same samples many times; others use `UnitRows` without copying.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from protorect.core.functional import Features, membership
from protorect.core.unit_rows import UnitRows

_MAX_BYTES = 32 * 2**20  # of a block
_CACHE_BYTES = 2**21  # per thread: the usual size of a core's inner cache

# (samples, members, options) -> scores of the queries (tasks, n_query, ways)
BlockFunction = Callable[[Tensor, Tensor, Any], Tensor]


def blockwise(*, in_cache: bool = False) -> Callable[[BlockFunction], Callable[..., Tensor]]:
    """Turn a function on one block of tasks into a method on any number of tasks.

    The function gets the samples (tasks, n_support + n_query, dim) of unit length, support first,
    and the members (tasks, ways, n_support), 1 where a sample belongs to a class, else 0. With
    `in_cache`, blocks fit the cores' caches: several times faster if each step reads all samples.
    """

    def decorate(function: BlockFunction) -> Callable[..., Tensor]:
        @wraps(function)
        @torch.no_grad()
        def method(
            support: Features, labels: Tensor, query: Features, ways: int, options: Any
        ) -> Tensor:
            max_bytes = torch.get_num_threads() * _CACHE_BYTES if in_cache else _MAX_BYTES
            parts = blocks(support, labels, query, ways, max_bytes)
            return torch.cat([function(samples, members, options) for samples, members in parts])

        return method

    return decorate


def blocks(
    support: Features, labels: Tensor, query: Features, ways: int, max_bytes: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Samples and members of as many tasks as fit into `max_bytes`, at least one."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    tasks, n_query, dim = query.rows.shape
    n, dtype = labels.shape[-1] + n_query, query.scale.dtype
    members = membership(labels, ways).mT.to(dtype).expand(tasks, -1, -1)
    # The samples, and room for four arrays each of (ways, dim) and (ways, n)
    task_bytes = (n * dim + 4 * ways * (dim + n)) * dtype.itemsize
    size = max(1, max_bytes // task_bytes)
    if size > torch.get_num_threads():
        size -= size % torch.get_num_threads()  # the same number of tasks for each core
    for start in range(0, tasks, size):
        part = slice(start, start + size)
        samples = torch.cat([_materialize(rows, part) for rows in (support, query)], dim=1)
        yield samples, members[part]


def class_mean_weights(members: Tensor) -> Tensor:
    """Weight of each support sample in the mean of its class, (tasks, ways, n_support)."""
    return members / members.sum(dim=-1, keepdim=True)


def _materialize(samples: UnitRows, part: slice) -> Tensor:
    shift, gain = (
        None if field is None else field[part] for field in (samples.shift, samples.gain)
    )
    return UnitRows(samples.rows[part], samples.scale[part], shift, gain).materialize()
