"""The samples of a batch of tasks written out, some tasks at a time.

Methods that pass over the same samples many times want them in one piece, at length one, and few
enough to stay in a cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from protorect.core.functional import Features, membership
from protorect.core.unit_rows import UnitRows


def blocks(
    support: Features, labels: Tensor, query: Features, ways: int, room: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Samples and members of as many tasks at a time as fit into `room` bytes, at least one.

    Returns
    -------
    samples
        (tasks, n_support + n_query, dim), each of length one, the support first.
    members
        (tasks, ways, n_support), 1 where a sample belongs to a class and 0 elsewhere.
    """
    support, query = UnitRows.of(support), UnitRows.of(query)
    tasks, n_query, dim = query.rows.shape
    n, kind = labels.shape[-1] + n_query, query.scale.dtype
    members = membership(labels, ways).mT.to(kind).expand(tasks, -1, -1)
    # The samples, and a few numbers for each class and dimension, and for each class and sample
    bytes_each = (n * dim + 4 * ways * (dim + n)) * kind.itemsize
    size = max(1, room // bytes_each)
    if size > torch.get_num_threads():
        size -= size % torch.get_num_threads()  # as many tasks for each core
    for start in range(0, tasks, size):
        part = slice(start, start + size)
        rows = [_part(samples, part).materialize() for samples in (support, query)]
        yield torch.cat(rows, dim=1), members[part]


def member_shares(members: Tensor) -> Tensor:
    """What each sample of the support weighs in the mean of its class, (tasks, ways, n_support)."""
    return members / members.sum(dim=-1, keepdim=True)


def _part(samples: UnitRows, part: slice) -> UnitRows:
    shift, gain = samples.shift, samples.gain
    return replace(
        samples,
        rows=samples.rows[part],
        scale=samples.scale[part],
        shift=None if shift is None else shift[part],
        gain=None if gain is None else gain[part],
    )
