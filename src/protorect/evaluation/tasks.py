"""Episodes as tensors, one bounded batch of tasks after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from protorect.core.unit_rows import UnitRows
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.features import FeatureTable

BATCH_BYTES = 24 * 2**20  # features and scores of one batch: stays in the outer cache
_SCORE_ARRAYS = 8  # arrays of the size of the scores that a method may hold at once


class TaskBatch(NamedTuple):
    """Consecutive episodes as tensors.

    `part` are their positions among all episodes. `support` is (tasks, way x shot, dim), `query`
    (tasks, n_query, dim), and `labels` (way x shot,) are the class positions of the support, which
    are the same in every task.
    """

    part: slice
    support: UnitRows
    labels: Tensor
    query: UnitRows


def task_batches(table: FeatureTable, episodes: Episodes) -> Iterator[TaskBatch]:
    """All episodes in their order; a batch is valid until the next one is asked for."""
    device, dim = table.rows.device, table.rows.shape[1]
    labels = torch.arange(episodes.way).repeat_interleave(episodes.shot).to(device)
    support = torch.from_numpy(episodes.support.reshape(len(episodes), -1))
    query = torch.from_numpy(episodes.query)
    n_query = query.shape[1]
    size = _batch_size(len(labels) + n_query, dim, episodes.way, table.scale.element_size())
    # One buffer for all batches: fresh memory would have to be mapped by the system each time.
    buffer = table.rows.new_empty((min(size, len(query)) * n_query, dim))
    for start in range(0, len(query), size):
        part = slice(start, min(start + size, len(query)))
        yield TaskBatch(
            part, _gather(table, support[part]), labels, _gather(table, query[part], buffer)
        )


def _gather(table: FeatureTable, samples: Tensor, buffer: Tensor | None = None) -> UnitRows:
    """Rows of the table by number (tasks, n), copied into the buffer if there is one."""
    samples = samples.to(table.rows.device)
    out = None if buffer is None else buffer[: samples.numel()]
    rows = torch.index_select(table.rows, 0, samples.flatten(), out=out)
    return UnitRows(rows.view(*samples.shape, -1).to(table.scale.dtype), table.scale[samples])


def _batch_size(samples: int, dim: int, ways: int, item_bytes: int) -> int:
    """Number of tasks with this many samples each that fit into BATCH_BYTES."""
    bytes_each = samples * (dim + _SCORE_ARRAYS * ways) * item_bytes
    return max(1, BATCH_BYTES // bytes_each)
