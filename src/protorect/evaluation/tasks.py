"""Episodes as tensors, one bounded batch of tasks after the other."""

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
    """Consecutive episodes as tensors."""

    part: slice  # their positions among all episodes
    support: UnitRows  # (tasks, way x shot, dim)
    labels: Tensor  # (way x shot,), class positions of the support, the same in every task
    query: UnitRows  # (tasks, n_query, dim)


def task_batches(table: FeatureTable, episodes: Episodes) -> Iterator[TaskBatch]:
    """All episodes in their order; a batch is valid until the next one is requested."""
    device, dim = table.rows.device, table.rows.shape[1]
    labels = torch.arange(episodes.way).repeat_interleave(episodes.shot).to(device)
    support = torch.from_numpy(episodes.support.reshape(len(episodes), -1))
    query = torch.from_numpy(episodes.query)
    n_query = query.shape[1]
    values_per_sample = dim + _SCORE_ARRAYS * episodes.way
    task_bytes = (len(labels) + n_query) * values_per_sample * table.scale.element_size()
    size = max(1, BATCH_BYTES // task_bytes)
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
